#include "cli/agent/settings.h"

#include <gtest/gtest.h>

#include "cli/agent/providers.h"
#include "cli/agent/secret_text.h"
#include "policy/document/document.h"

namespace caisson::cli {
namespace {

const SettingsFile& settingsOf(const char* agent) { return findAgent(agent)->settings[0]; }

TEST(AgentSettings, SecretsAreDetectedInText) {
  for (const char* text : {R"({"env":{"MY_API_KEY":"abc"}})", "experimental_bearer_token = \"abc\"",
                           "password: hunter2", R"({"url":"https://me:pass@example.org"})",
                           R"(["ghp_0123456789abcdefghijklmnopqrstuvwxyz"])", "-----BEGIN PRIVATE KEY-----",
                           "\"apiKey\":\n  \"abc\"", "token\n=\nabc", "run --api-key abc", "run '--password'\n  abc",
                           "subscriptionKey: abc", "550e8400-e29b-41d4-a716-446655440000", "mTp4Q9xYbT2LwZ8RkV5sJc7N"})
    EXPECT_TRUE(mayHoldSecret("settings.json", text)) << text;
  EXPECT_TRUE(mayHoldSecret("notes.md", "use ghp_0123456789abcdefghijklmnopqrstuvwxyz for it"));
  EXPECT_TRUE(mayHoldSecret("notes.md", "password: hunter2"));
  EXPECT_TRUE(mayHoldSecret("notes.md", "Password: swordfish\n"));
  EXPECT_TRUE(mayHoldSecret("notes.md", "curl --token swordfish x"));
  EXPECT_TRUE(mayHoldSecret("settings.json", std::string(5000, 'a'))) << "too long to be read";
}

TEST(AgentSettings, OrdinaryTextIsCopied) {
  for (const char* text : {"Tokens: count them.\nPassword: ask the user.", "Pass the flag --token to log in.",
                           "curl --token <TOKEN> or --api-key $KEY", "Author: Jane\nKeep functions short.",
                           "See https://example.org/a?b=c#d and /usr/lib/node_modules/@scope/name.",
                           "Use claude-sonnet-4-20250514 or us.anthropic.claude-3-7-sonnet-20250219-v1:0."})
    EXPECT_FALSE(mayHoldSecret("CLAUDE.md", text)) << text;
  EXPECT_FALSE(mayHoldSecret("theme.json", R"({"model":"opus","maxTokens":8000,"theme":"dark"})"));
}

TEST(AgentSettings, OrdinarySettingsAreCopiedAsTheyAre) {
  const std::string text = R"x({
  "model": "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
  "cleanupPeriodDays": 20,
  "includeCoAuthoredBy": false,
  "permissions": {
    "allow": [
      "Bash(npm run test:*)",
      "Read(~/.zshrc)"
    ],
    "deny": [
      "Read(./.env)",
      "Read(./secrets/**)"
    ]
  },
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [
          {
            "type": "command",
            "command": "python3 ~/check.py",
            "timeout": 5
          }
        ]
      }
    ]
  }
}
)x";
  const auto clean = cleanSettings(settingsOf("claude"), text);
  ASSERT_TRUE(clean) << clean.error();
  EXPECT_EQ(clean->text, text);
  EXPECT_TRUE(clean->left_out.empty());
}

TEST(AgentSettings, CopyOfTomlReadsBackAsTheSame) {
  const std::string text =
      "model = \"gpt-5\"\nmodel_max_output_tokens = 8000\nnotify = [\"say\", \"a \\\"b\\\" \\\\ \\u0001 é\"]\n"
      "[tui]\nratio = 0.5\nnotifications = true\n[projects.\"/home/a b\"]\ntrust_level = \"trusted\"\n"
      "[mcp_servers.docs]\ncommand = \"docs\"\nargs = [\"--port\", \"80\"]\n";
  const auto clean = cleanSettings(settingsOf("codex"), text);
  ASSERT_TRUE(clean) << clean.error();
  EXPECT_TRUE(clean->left_out.empty()) << clean->left_out.front();
  const auto again = cleanSettings(settingsOf("codex"), clean->text);
  ASSERT_TRUE(again) << again.error() << clean->text;
  EXPECT_EQ(again->text, clean->text);
  const auto document = policy::readText(clean->text, policy::Format::toml, "t");
  ASSERT_TRUE(document);
  const policy::Node* notify = document->root.find("notify");
  ASSERT_NE(notify, nullptr);
  EXPECT_EQ(notify->items[1].text, "a \"b\" \\ \x01 é");
  EXPECT_EQ(document->root.find("projects")->find("/home/a b")->find("trust_level")->text, "trusted");
}

TEST(AgentSettings, UnknownKeysAreNamedAndUnreadableFilesLeftOut) {
  const auto clean = cleanSettings(settingsOf("claude"), R"({"model": "opus", "someNewKey": {"a": "b"}})");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->left_out, std::vector<std::string>{"someNewKey"});
  const auto damaged = cleanSettings(settingsOf("claude"), "{\"apiKey\": canary}");
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().find("canary"), std::string::npos) << damaged.error();
  EXPECT_TRUE(cleanSettings(settingsOf("claude"), "\n"));
}

TEST(AgentSettings, KeysThatAreSecretsAreNotPrinted) {
  const auto clean =
      cleanSettings(settingsOf("codex"), "[projects.\"ghp_0123456789abcdefghij\"]\ntrust_level = \"trusted\"\n");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->text.find("ghp_"), std::string::npos);
  ASSERT_EQ(clean->left_out.size(), 1U);
  EXPECT_EQ(clean->left_out.front(), "projects....");
}

TEST(AgentSettings, PatternsOfAllAgentsAreWellFormed) {
  for (const KnownAgent& agent : knownAgents()) {
    for (const SettingsFile& file : agent.settings) {
      EXPECT_FALSE(file.path.starts_with('/')) << file.path;
      EXPECT_EQ(file.format == SettingsFormat::text, file.keys.empty() && file.servers.empty()) << file.path;
      for (const std::string_view key : file.keys) {
        EXPECT_LE(std::count(key.begin(), key.end(), '*') - (key.ends_with("/**") ? 2 : 0), 2) << key;
        EXPECT_NE(key, "**") << file.path;
      }
    }
  }
}

}  // namespace
}  // namespace caisson::cli
