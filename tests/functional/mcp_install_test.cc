// `caisson mcp install`: the entries that agent hosts start the server with.
#include "functional/terminal.h"
#include "mcp_fixture.h"

namespace caisson::test {
namespace {

class McpInstall : public testing::Test {
 protected:
  void SetUp() override {
    project.write("policy.toml", "extends = \"bash\"\n");
    project.makeDir("sources");
  }
  [[nodiscard]] RunOutput install(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"mcp", "install"});
    return runCaisson(arguments,
                      {.env = {{"HOME", home.path()}, {"CAISSON_HOME", home / "state"}}, .cwd = project.path()});
  }
  static Json read(const std::string& path) { return Json::parse(readFile(path)); }

  const TempDir home, project;
};

const std::vector<std::string> kFlags{"--policy",       "policy.toml", "--workspace", "sources:ro",
                                      "--allow-weaker", "hostname",    "--read-only", "--yes"};

std::vector<std::string> with(const std::string& host, const std::string& scope) {
  std::vector<std::string> arguments{host, "--scope", scope};
  arguments.insert(arguments.end(), kFlags.begin(), kFlags.end());
  return arguments;
}

TEST_F(McpInstall, ProjectFilesContainNoPathOfThisMachine) {
  const struct {
    const char* host;
    const char* file;
  } hosts[] = {{"claude-code", ".mcp.json"},         {"codex", ".codex/config.toml"},
               {"cursor", ".cursor/mcp.json"},       {"gemini", ".gemini/settings.json"},
               {"jetbrains", ".junie/mcp/mcp.json"}, {"opencode", "opencode.json"},
               {"vscode", ".vscode/mcp.json"},       {"zed", ".zed/settings.json"}};
  for (const auto& [host, file] : hosts) {
    const RunOutput written = install(with(host, "project"));
    ASSERT_EQ(written.exit_status, 0) << written.describe();
    const std::string text = readFile(project / file);
    EXPECT_EQ(text.find("\"/"), std::string::npos) << text;
    EXPECT_EQ(text.find("=/"), std::string::npos) << text;
    EXPECT_EQ(text.find(project.path()), std::string::npos) << text;
    EXPECT_NE(text.find("--read-only"), std::string::npos) << text;
    EXPECT_NE(text.find("--workspace="), std::string::npos) << text;
    EXPECT_EQ(install(with(host, "project")).out, "./" + std::string(file) + " has the entry already\n");
  }
  EXPECT_EQ(read(project / ".mcp.json")["mcpServers"]["caisson"],
            Json::parse(R"({"type": "stdio", "command": "caisson", "args": ["mcp", "--policy=policy.toml",
                            "--workspace=sources:ro", "--allow-weaker=hostname", "--read-only"]})"));
  EXPECT_EQ(read(project / ".vscode/mcp.json")["servers"]["caisson"]["args"][1],
            "--policy=${workspaceFolder}/policy.toml");
  EXPECT_EQ(read(project / "opencode.json")["mcp"]["caisson"]["command"][0], "caisson");
  EXPECT_TRUE(read(project / ".zed/settings.json").contains("context_servers"));
}

TEST_F(McpInstall, UserFilesHaveAbsolutePaths) {
  const struct {
    const char* host;
    const char* file;
  } hosts[] = {{"claude-code", ".claude.json"},
               {"claude-desktop", ".config/Claude/claude_desktop_config.json"},
               {"codex", ".codex/config.toml"},
               {"opencode", ".config/opencode/opencode.json"},
               {"windsurf", ".codeium/windsurf/mcp_config.json"},
               {"zed", ".config/zed/settings.json"}};
  for (const auto& [host, file] : hosts) {
    const RunOutput written = install(with(host, "user"));
    ASSERT_EQ(written.exit_status, 0) << written.describe();
    const std::string text = readFile(home / file);
    EXPECT_NE(text.find("--policy=" + project.path() + "/policy.toml"), std::string::npos) << text;
    EXPECT_NE(text.find(project.path() + "/sources:ro"), std::string::npos) << text;
  }
}

TEST_F(McpInstall, ChangeDuringThePromptIsKept) {
  home.write(".claude.json", R"({"projects": {}})");
  const std::string changed = R"({"projects": {"/a": {}}, "oauthAccount": "new"})";
  for (const bool changes : {true, false}) {
    Terminal terminal({"/usr/bin/env", "HOME=" + home.path(), "CAISSON_HOME=" + (home / "state"), caissonBinary(),
                       "mcp", "install", "claude-code", "--scope", "user"},
                      project.path());
    ASSERT_TRUE(terminal.shows("write it? [y/N]")) << terminal.screen();
    if (changes) home.write(".claude.json", changed);
    terminal.type("y\n");
    EXPECT_EQ(terminal.wait(), changes ? 125 : 0) << terminal.screen();
    EXPECT_EQ(terminal.screen().find("changed meanwhile") != std::string::npos, changes) << terminal.screen();
    EXPECT_EQ(read(home / ".claude.json")["oauthAccount"], "new");
    EXPECT_EQ(read(home / ".claude.json").contains("mcpServers"), !changes);
  }
}

TEST_F(McpInstall, FileThatCannotBeEditedSafelyIsRefused) {
  const struct {
    const char* host;
    const char* file;
    std::string text;
    const char* message;
  } cases[] = {
      {"codex", ".codex/config.toml", "[mcp_servers.\"caisson\"]\ncommand = \"x\"\n", "there is another"},
      {"codex", ".codex/config.toml", "[ mcp_servers . caisson ]\ncommand = \"x\"\n", "there is another"},
      {"codex", ".codex/config.toml", "[mcp_servers]\ncaisson = { command = \"x\" }\n", "there is another"},
      {"codex", ".codex/config.toml", "mcp_servers = { a = { command = \"x\" } }\n", "cannot be extended"},
      {"codex", ".codex/config.toml", "mcp_servers = 5\n", "cannot be extended"},
      {"codex", ".codex/config.toml", "model = \n", "cannot be read as TOML"},
      {"codex", ".codex/config.toml", "note = \"\"\"\nopen", "cannot be read as TOML"},
      {"cursor", ".cursor/mcp.json", R"({"big": 123456789012345678901234567890})", "would be rounded"},
      {"cursor", ".cursor/mcp.json", R"({"a": [0.12345678901234567890123]})", "would be rounded"},
      {"cursor", ".cursor/mcp.json", R"({"a": {"b": 1, "c": {}, "b": 2}})", "occurs twice"},
  };
  for (const auto& [host, file, text, message] : cases) {
    project.write(file, text);
    const RunOutput output = install({host, "--yes", "--scope", "project"});
    EXPECT_EQ(output.exit_status, 125) << text << output.describe();
    EXPECT_NE(output.err.find(message), std::string::npos) << text << output.describe();
    EXPECT_EQ(readFile(project / file), text);
  }
}

TEST_F(McpInstall, OtherTablesAndNumbersAreKept) {
  const std::string toml =
      "# [mcp_servers.caisson]\nnote = \"\"\"\n[mcp_servers.caisson]\n\"\"\"\n[mcp_servers.other]\ncommand = \"x\"\n";
  project.write(".codex/config.toml", toml);
  ASSERT_EQ(install({"codex", "--yes", "--scope", "project"}).exit_status, 0);
  EXPECT_TRUE(readFile(project / ".codex/config.toml").starts_with(toml + "\n[mcp_servers.caisson]\n"));
  EXPECT_EQ(install({"codex", "--yes", "--scope", "project"}).out, "./.codex/config.toml has the entry already\n");
  const std::string json = R"({"a": [1.50, 1e5, -0.1, 18446744073709551615, 2.5e-7], "b": {"a": 1}, "c": {"a": 2}})";
  project.write(".cursor/mcp.json", json);
  ASSERT_EQ(install({"cursor", "--yes", "--scope", "project"}).exit_status, 0);
  Json after = read(project / ".cursor/mcp.json");
  after.erase("mcpServers");
  EXPECT_EQ(after, Json::parse(json));
}

TEST_F(McpInstall, WrongFlagsAreNotWritten) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{"vscode", "--yes", "--workspace", home.path()}, "outside of this project"},
      {{"windsurf", "--yes", "--scope", "project"}, "has no such configuration"},
      {{"cursor", "--yes", "--tools", "sandbox_fly"}, "there is no such tool"},
      {{"cursor", "--yes", "--http", "0"}, "standard input and output"},
      {{"cursor", "--yes", "--memory", "much"}, "--memory: invalid size \"much\""},
      {{"notepad", "--yes"}, "unknown host"},
  };
  for (const auto& [arguments, message] : cases) {
    const RunOutput output = install(arguments);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_NE(output.err.find(message), std::string::npos) << output.describe();
  }
  EXPECT_FALSE(exists(home / ".cursor"));
  EXPECT_FALSE(exists(project / ".vscode"));
}

}  // namespace
}  // namespace caisson::test
