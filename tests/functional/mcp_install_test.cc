// `caisson mcp install`: the entries that agent hosts start the server with.
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

TEST_F(McpInstall, WrongFlagsAreNotWritten) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{"vscode", "--yes", "--workspace", home.path()}, "outside of this project"},
      {{"windsurf", "--yes", "--scope", "project"}, "has no such configuration"},
      {{"cursor", "--yes", "--tools", "sandbox_fly"}, "there is no such tool"},
      {{"cursor", "--yes", "--http", "0"}, "standard input and output"},
      {{"cursor", "--yes", "--memory", "much"}, "--memory much"},
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
