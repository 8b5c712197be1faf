// Settings that look a little like secrets, or whose structure must survive.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/agent/providers.h"
#include "cli/agent/settings.h"

namespace caisson::cli {
namespace {

struct KeptCase {
  const char* agent;
  const char* text;
  const char* copy;      ///< without white space
  const char* left_out;  ///< "": nothing
};

constexpr KeptCase kKeptCases[] = {
    {"amp", R"x({"amp.permissions": [{"tool": "Bash", "matches": {"cmd": "ls"}, "action": "allow"}]})x",
     R"x({"amp.permissions":[{"tool":"Bash","matches":{"cmd":"ls"},"action":"allow"}]})x", ""},
    {"amp", R"x({"amp.notifications.x": [{"apiKey": "a"}, {"b": 1}]})x", R"x({"amp.notifications.x":[]})x",
     "amp.notifications.x"},
    {"cn", "rules:\n  - name: a\n    rule: b\n  - text\n", R"x({"rules":[{"name":"a","rule":"b"},"text"]})x", ""},
    {"cn", "models:\n  - name: a\n  - apiKey: b\n", R"x({"models":[{"name":"a"}]})x", "models"},
    {"opencode", R"x({"permission": {"read": {"*": "allow", "*secret*": "deny"}, "bash": {"cat *token*": "ask"}}})x",
     R"x({"permission":{"read":{"*":"allow","*secret*":"deny"},"bash":{"cat*token*":"ask"}}})x", ""},
    {"opencode", R"x({"formatter": {"a": {"command": ["prettier", "--write", "$FILE"], "extensions": [".ts"]}}})x",
     R"x({"formatter":{"a":{"command":["prettier","--write","$FILE"],"extensions":[".ts"]}}})x", ""},
    {"codex", "[model_providers.azure.query_params]\napi-version = \"2025-04-01-preview\"\n",
     "[\"model_providers\"][\"model_providers\".\"azure\"][\"model_providers\".\"azure\".\"query_params\"]"
     "\"api-version\"=\"2025-04-01-preview\"",
     ""},
    {"codex", "notify = [\"notify-send\", \"-u\", \"low\", \"Codex\"]\n",
     R"x("notify"=["notify-send","-u","low","Codex"])x", ""},
    {"claude",
     R"x({"permissions": {"allow": ["Bash(redis-cli *)", "Bash(git commit -a -m x)", "Read(./secrets/**)"]}})x",
     R"x({"permissions":{"allow":["Bash(redis-cli*)","Bash(gitcommit-a-mx)","Read(./secrets/**)"]}})x", ""},
    {"claude", R"x({"permissions": {"allow": ["Bash(ls:*)", "WebFetch(https://a.example/?token=abc1)"]}})x",
     R"x({"permissions":{"allow":["Bash(ls:*)"]}})x", "permissions.allow"},
    {"claude", R"x({"env": {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": 8000, "MAX_THINKING_TOKENS": "4000"}})x",
     R"x({"env":{"CLAUDE_CODE_MAX_OUTPUT_TOKENS":8000,"MAX_THINKING_TOKENS":"4000"}})x", ""},
    {"gemini", R"x({"hooks": {"BeforeTool": [{"matcher": "x", "hooks": [{"type": "command", "command": "a -b"}]}]}})x",
     R"x({"hooks":{"BeforeTool":[{"matcher":"x","hooks":[{"type":"command","command":"a-b"}]}]}})x", ""},
    {"codex", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.tools.find]\napproval_mode = \"auto\"\n",
     "[\"mcp_servers\"][\"mcp_servers\".\"a\"]\"command\"=\"x\"[\"mcp_servers\".\"a\".\"tools\"]"
     "[\"mcp_servers\".\"a\".\"tools\".\"find\"]\"approval_mode\"=\"auto\"",
     ""},
    {"crush", R"x({"lsp": {"ts": {"command": "typescript-language-server", "args": ["--stdio"]}}})x",
     R"x({"lsp":{"ts":{"command":"typescript-language-server","args":["--stdio"]}}})x", ""},
    {"crush",
     R"x({"lsp": {"ts": {"command": "x", "args": ["--port", 8080, "--verbose", true, "--max-tokens", 4096]}}})x",
     R"x({"lsp":{"ts":{"command":"x","args":["--port",8080,"--verbose",true,"--max-tokens",4096]}}})x", ""},
    {"claude",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "NODE_ENV=test LOG_LEVEL=debug PORT=8080 make"}]}]}})x",
     R"x({"hooks":{"Stop":[{"hooks":[{"type":"command","command":"NODE_ENV=testLOG_LEVEL=debugPORT=8080make"}]}]}})x",
     ""},
    {"claude",
     R"x({"permissions": {"allow": ["Bash(CI=1 npm test)", "Bash(A=* make)", "Bash(LC_ALL=C TZ=UTC date)"]}})x",
     R"x({"permissions":{"allow":["Bash(CI=1npmtest)","Bash(A=*make)","Bash(LC_ALL=CTZ=UTCdate)"]}})x", ""},
    {"claude",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "docker run -e ACME -e TEAM=$TEAM -e DEBUG=1 img mode=fast"}]}]}})x",
     R"x({"hooks":{"Stop":[{"hooks":[{"type":"command","command":"dockerrun-eACME-eTEAM=$TEAM-eDEBUG=1imgmode=fast"}]}]}})x",
     ""},
    {"crush", R"x({"lsp": {"ts": {"command": "x", "args": ["mode=fast", "--set", "region=eu"]}}})x",
     R"x({"lsp":{"ts":{"command":"x","args":["mode=fast","--set","region=eu"]}}})x", ""},
    {"claude",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ACME=/run/acme FEATURE=on COUNT=12 make"}]}]}})x",
     R"x({"hooks":{"Stop":[{"hooks":[{"type":"command","command":"ACME=/run/acmeFEATURE=onCOUNT=12make"}]}]}})x", ""},
    {"claude",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "curl -H 'Content-Type: text/plain' x"}]}]}})x",
     R"x({"hooks":{"Stop":[{"hooks":[{"type":"command","command":"curl-H'Content-Type:text/plain'x"}]}]}})x", ""},
    {"cursor-agent", R"x({"permissions": {"allow": ["Shell(gh auth status)", "Shell(ls)"]}})x",
     R"x({"permissions":{"allow":["Shell(ghauthstatus)","Shell(ls)"]}})x", ""},
};

TEST(AgentSettings, HarmlessSettingsAndTheirStructureAreKept) {
  for (const KeptCase& one : kKeptCases) {
    SCOPED_TRACE(one.text);
    const auto clean = cleanSettings(findAgent(one.agent)->settings[0], one.text);
    ASSERT_TRUE(clean) << clean.error();
    std::string copy = clean->text;
    std::erase_if(copy, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_EQ(copy, one.copy);
    const bool listed = std::ranges::any_of(clean->left_out, [&](const auto& path) { return path == one.left_out; });
    EXPECT_TRUE(*one.left_out == 0 ? clean->left_out.empty() : listed)
        << (clean->left_out.empty() ? "nothing" : clean->left_out.front());
  }
}

}  // namespace
}  // namespace caisson::cli
