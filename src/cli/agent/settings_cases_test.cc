// Settings files in the formats of the agents' documentation, each with a secret in another place.
#include <gtest/gtest.h>

#include "cli/agent/providers.h"
#include "cli/agent/secret_text.h"
#include "cli/agent/settings.h"
#include "support/conforms.h"

namespace caisson::cli {
namespace {

struct SecretCase {
  const char* agent;
  const char* path;  ///< below the home
  const char* secret;
  const char* kept;  ///< a part that arrives; "": the file is left out as a whole
  const char* text;
};

constexpr SecretCase kSecretCases[] = {
    // Claude Code
    {"claude", ".claude/settings.json", "canary-1", "opus",
     R"x({"model": "opus", "env": {"SERVICE_TOKEN": "canary-1"}})x"},
    {"claude", ".claude/settings.json", "canary-2", "opus",
     R"x({"model": "opus", "env": {"PLAIN_NAME": "canary-2"}})x"},
    {"claude", ".claude/settings.json", "canary-3", "opus", R"x({"model": "opus", "apiKeyHelper": "echo canary-3"})x"},
    {"claude", ".claude/settings.json", "canary-4", "opus",
     "{\"model\": \"opus\", // canary-4 is the key\n\"verbose\": true}"},
    {"claude", ".claude/settings.json", "canary-5", "Bash(ls:*)",
     R"x({"permissions": {"allow": ["Bash(ls:*)", "Bash(curl -H 'Authorization: Bearer canary-5' x)"]}})x"},
    {"claude", ".claude/settings.json", "canary-6", "make check",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify --token canary-6"}]},
        {"hooks": [{"type": "command", "command": "make check"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary-7", "dark",
     R"x({"theme": "dark", "statusLine": {"type": "command", "command": "PASSWORD=canary-7 status"}})x"},
    {"claude", ".claude/settings.json", "canary-8", "opus",
     R"x({"model": "opus", "otelHeadersHelper": "echo canary-8", "awsAuthRefresh": "aws sso login"})x"},
    {"claude", ".claude/settings.json", "canary-9", "sonnet",
     R"x({"env": {"ANTHROPIC_MODEL": "sonnet", "ANTHROPIC_CUSTOM_HEADERS": "X-Team: canary-9"}})x"},
    {"claude", ".claude/settings.json", "canary-10", "1",
     R"x({"env": {"DISABLE_TELEMETRY": "1", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": "canary-10"}})x"},
    {"claude", ".claude/settings.json", "canary-11", "opus",
     R"x({"model": "opus", "mcpServers": {"x": {"command": "x", "args": ["canary-11"]}}})x"},
    {"claude", ".claude/keybindings.json", "canary-12", "app:quit",
     R"x({"bindings": [{"context": "Chat", "bindings": {"ctrl+q": "app:quit"}}], "password": "canary-12"})x"},
    {"claude", ".claude/CLAUDE.md", "canary-13", "", "# Notes\n\nThe database\npassword: canary-13\n"},
    {"claude", ".claude/CLAUDE.md", "swordfish", "", "Log in with `admin --password swordfish` first.\n"},
    {"claude", ".claude/commands/deploy.md", "ghp_canary0000000000", "",
     "push with ghp_canary0000000000 as the user\n"},
    {"claude", ".claude/skills/a/config.json", "canary-14", "", "{\n  \"apiKey\":\n    \"canary-14\"\n}\n"},
    {"claude", ".claude/agents/db.md", "canary15pw", "", "Connect to postgres://app:canary15pw@db.example/app.\n"},
    // Codex
    {"codex", ".codex/config.toml", "ctx7-canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.context7]\ncommand = \"npx\"\nargs = [\"-y\", \"@upstash/context7-mcp\", "
     "\"--api-key\", \"ctx7-canary\"]\n"},
    {"codex", ".codex/config.toml", "canary-21", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.db]\ncommand = \"db\"\nargs = [\"--password\",\n  \"canary-21\"]\n"},
    {"codex", ".codex/config.toml", "canary-22", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.db]\ncommand = \"db\"\n[mcp_servers.db.env]\nDB_NAME = \"canary-22\"\n"},
    {"codex", ".codex/config.toml", "canary-23", "ACME_KEY",
     "[model_providers.acme]\nname = \"Acme\"\nbase_url = \"https://acme.example/v1\"\nenv_key = \"ACME_KEY\"\n"
     "http_headers = { \"X-Example\" = \"canary-23\" }\n"},
    {"codex", ".codex/config.toml", "canary-24", "Acme",
     "[model_providers.acme]\nname = \"Acme\"\nexperimental_bearer_token = \"canary-24\"\n"},
    {"codex", ".codex/config.toml", "canary-25", "Acme",
     "[model_providers.acme]\nname = \"Acme\"\nbase_url = \"https://acme.example/v1?sig=canary-25\"\n"},
    {"codex", ".codex/config.toml", "canary-26", "never",
     "approval_policy = \"never\"\n[otel.exporter.otlp-http]\nendpoint = \"https://o.example\"\n"
     "headers = { \"x-otlp\" = \"canary-26\" }\n"},
    {"codex", ".codex/config.toml", "canary-27", "core",
     "[shell_environment_policy]\ninherit = \"core\"\nset = { GIT_ASKPASS_ANSWER = \"canary-27\" }\n"},
    {"codex", ".codex/config.toml", "canary-28", "gpt-5",
     "model = \"gpt-5\"\nnotify = [\"notify\", \"--webhook\", \"canary-28\"]\n"},
    {"codex", ".codex/config.toml", "canary-29", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.figma]\nurl = \"https://mcp.example/mcp\"\n"
     "http_headers = { \"Authorization\" = \"canary-29\" }\n"},
    {"codex", ".codex/AGENTS.md", "canary-30x", "", "API_KEY=canary-30x make test\n"},
    // Gemini CLI and Qwen Code
    {"gemini", ".gemini/settings.json", "canary-31", "GitHub",
     R"x({"ui": {"theme": "GitHub"}, "mcpServers": {"a": {"httpUrl": "https://a.example/mcp",
        "headers": {"X-Team": "canary-31"}}}})x"},
    {"gemini", ".gemini/settings.json", "canary-32", "GitHub",
     R"x({"theme": "GitHub", "mcpServers": {"a": {"command": "a", "args": ["--header", "X-Api-Key: canary-32"]}}})x"},
    {"gemini", ".gemini/settings.json", "canary-33", "vim",
     R"x({"general": {"preferredEditor": "vim", "proxy": "http://me:canary-33@proxy.example:3128"}})x"},
    {"gemini", ".gemini/settings.json", "canary-34", "vim",
     R"x({"preferredEditor": "vim", "telemetry": {"otlpEndpoint": "https://o.example/canary-34"}})x"},
    {"gemini", ".gemini/settings.json", "canary-35", "gemini-api-key",
     R"x({"security": {"auth": {"selectedType": "gemini-api-key", "apiKey": "canary-35"}}})x"},
    {"gemini", ".gemini/settings.json", "canary-36", "vim",
     R"x({"preferredEditor": "vim", "tools": {"discoveryCommand": "tools --key canary-36"}})x"},
    {"gemini", ".gemini/settings.json", "c4n4ry-3f7a-49b1-8d2e-6f5a1b2c3d4e", "vim",
     R"x({"preferredEditor": "vim", "mcpServers": {"a": {"url": "https://a.example/c4n4ry-3f7a-49b1-8d2e-6f5a1b2c3d4e/sse"}}})x"},
    {"gemini", ".gemini/commands/deploy.toml", "canary-37", "", "prompt = \"deploy\"\nsecret = \"canary-37\"\n"},
    {"qwen", ".qwen/settings.json", "canary-38", "qwen3",
     R"x({"model": {"name": "qwen3"}, "modelProviders": {"openai": [{"id": "x", "envKey": "X", "apiKey": "canary-38"}]}})x"},
    // opencode
    {"opencode", ".config/opencode/opencode.json", "canary-41", "opencode/big",
     R"x({"model": "opencode/big", "provider": {"acme": {"options": {"apiKey": "canary-41"}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-42", "https://acme.example/v1",
     R"x({"provider": {"acme": {"options": {"baseURL": "https://acme.example/v1", "headers": {"X": "canary-42"}}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-43", "npx",
     R"x({"mcp": {"a": {"type": "local", "command": ["npx", "-y", "a"]},
        "b": {"type": "local", "command": ["b", "--token", "canary-43"]}}})x"},
    {"opencode", ".config/opencode/opencode.jsonc", "canary-44", "big",
     "{\n  // the old key: canary-44\n  \"model\": \"big\",\n}\n"},
    {"opencode", ".config/opencode/opencode.json", "canary-45", "big",
     R"x({"model": "big", "mcp": {"b": {"type": "local", "command": ["b"], "environment": {"ANY": "canary-45"}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-46", "big",
     R"x({"model": "big", "agent": {"a": {"prompt": "use the password: canary-46"}}})x"},
    {"opencode", ".config/opencode/agent/a.md", "sk-canary00000000000000", "",
     "---\nmode: all\n---\nUse sk-canary00000000000000.\n"},
    // aider
    {"aider", ".aider.conf.yml", "canary-51", "sonnet", "model: sonnet\nopenai-api-key: canary-51\n"},
    {"aider", ".aider.conf.yml", "canary-52", "sonnet", "model: sonnet\napi-key:\n  - gemini=canary-52\n"},
    {"aider", ".aider.conf.yml", "canary-53", "sonnet", "model: sonnet\nset-env:\n  - ANY=canary-53\n"},
    {"aider", ".aider.conf.yml", "canary-54", "sonnet",
     "model: sonnet\nopenai-api-base: https://me:canary-54@api.example/v1\n"},
    {"aider", ".aider.conf.yml", "canary-55", "sonnet", "model: sonnet # canary-55\nanthropic-api-key:\n  canary-55\n"},
    {"aider", ".aider.conf.yml", "canary-56", "make", "lint-cmd: make\ntest-cmd: \"TOKEN=canary-56 make test\"\n"},
    // Cursor, Copilot CLI, Amp
    {"cursor-agent", ".cursor/mcp.json", "canary-61", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "a", "env": {"ID": "canary-61"}}}})x"},
    {"cursor-agent", ".cursor/cli-config.json", "canary-62", "Shell(ls)",
     R"x({"version": 1, "permissions": {"allow": ["Shell(ls)"]}, "authInfo": {"email": "canary-62"}
})x"},
    {"copilot", ".copilot/config.json", "canary-63", "never",
     R"x({"banner": "never", "copilot_tokens": {"https://github.com:me": "canary-63"}, "last_logged_in_user": {}})x"},
    {"copilot", ".copilot/mcp-config.json", "canary-64", "docs",
     R"x({"mcpServers": {"docs": {"type": "local", "command": "docs", "args": [], "tools": ["*"]},
        "a": {"type": "http", "url": "https://a.example/mcp?token=canary-64", "tools": ["*"]}}})x"},
    {"amp", ".config/amp/settings.json", "canary-65", "off",
     R"x({"amp.updates.mode": "off", "amp.mcpServers": {"a": {"command": "npx", "args": ["a", "apiKey", "canary-65"]}}})x"},
    // Goose, Crush, Continue, Grok
    {"goose", ".config/goose/config.yaml", "canary-71", "developer",
     "GOOSE_MODEL: gpt-5\nextensions:\n  developer:\n    type: builtin\n    name: developer\n    enabled: true\n"
     "  a:\n    type: stdio\n    cmd: a\n    envs:\n      ANY: canary-71\n"},
    {"goose", ".config/goose/config.yaml", "canary-72", "gpt-5", "GOOSE_MODEL: gpt-5\nOPENAI_API_KEY: canary-72\n"},
    {"goose", ".config/goose/config.yaml", "canary-73", "gpt-5",
     "GOOSE_MODEL: gpt-5\nextensions:\n  a:\n    type: streamable_http\n    uri: https://a.example/mcp\n"
     "    headers:\n      Authorization: Bearer canary-73\n"},
    {"crush", ".config/crush/crush.json", "canary-74", "https://api.example/v1",
     R"x({"providers": {"a": {"type": "openai", "base_url": "https://api.example/v1", "api_key": "canary-74",
        "extra_headers": {"X": "canary-74"}}}})x"},
    {"crush", ".config/crush/crush.json", "canary-75", "gopls",
     R"x({"lsp": {"go": {"command": "gopls"}}, "mcp": {"a": {"type": "stdio", "command": "a", "args": ["-u", "me:canary-75"]}}})x"},
    {"cn", ".continue/config.yaml", "canary-76", "gpt-5",
     "name: mine\nmodels:\n  - name: a\n    provider: openai\n    model: gpt-5\n    apiKey: canary-76\n"},
    {"cn", ".continue/config.yaml", "canary-77", "mine",
     "name: mine\nmcpServers:\n  - name: a\n    command: a\n    args: [--secret, canary-77]\n"},
    {"cn", ".continue/config.yaml", "canary-78", "gpt-5",
     "name: mine\nmodels:\n  - name: a\n    model: gpt-5\n    requestOptions:\n      headers:\n        X-Any: "
     "canary-78\n"},
    {"grok", ".grok/user-settings.json", "canary-79", "grok-4",
     R"x({"apiKey": "canary-79", "defaultModel": "grok-4"})x"},
};

const SettingsFile* settingsAt(const KnownAgent& agent, std::string_view path) {
  for (const SettingsFile& file : agent.settings) {
    const bool below = file.format == SettingsFormat::text && path.starts_with(std::string(file.path) + "/");
    if (file.path == path || below) return &file;
  }
  return nullptr;
}

TEST(AgentSettings, SixtyFilesArriveWithoutTheirSecret) {
  CONFORMS("R-AGENT-5");
  static_assert(std::size(kSecretCases) >= 60);
  for (const SecretCase& one : kSecretCases) {
    SCOPED_TRACE(std::string(one.path) + " " + one.text);
    const KnownAgent* agent = findAgent(one.agent);
    ASSERT_NE(agent, nullptr);
    const SettingsFile* file = settingsAt(*agent, one.path);
    ASSERT_NE(file, nullptr);
    ASSERT_NE(std::string_view(one.text).find(one.secret), std::string_view::npos) << "a wrong test";
    if (file->format == SettingsFormat::text) {
      EXPECT_STREQ(one.kept, "");
      EXPECT_TRUE(mayHoldSecret(one.path, one.text));
      continue;
    }
    const auto clean = cleanSettings(*file, one.text);
    ASSERT_TRUE(clean) << clean.error();
    EXPECT_EQ(clean->text.find(one.secret), std::string::npos) << clean->text;
    EXPECT_NE(clean->text.find(one.kept), std::string::npos) << clean->text;
    const bool comment = std::string_view(one.text).find("// ") != std::string_view::npos;
    EXPECT_EQ(clean->left_out.empty(), comment) << "what is left out is named, except a comment";
    for (const std::string& name : clean->left_out) EXPECT_EQ(name.find(one.secret), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace caisson::cli
