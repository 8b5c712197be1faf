// What a model can learn of secrets that the host makes while a sandbox exists, and where its commits may write.
#include "mcp_fixture.h"

namespace caisson::test {
namespace {

constexpr const char* kLate = "kL4te9xQz7Wm2";

class McpHostSecrets : public Mcp {
 protected:
  static Json execute(McpClient& client, const std::string& sandbox, const std::string& script) {
    const Json done =
        client.tool("sandbox_execute", {{"sandbox_id", sandbox}, {"command", "sh"}, {"args", {"-c", script}}});
    EXPECT_EQ(done.value("exit_code", -1), 0) << done;
    return done;
  }
  void expectDiffWithoutSecrets(const std::vector<std::string>& flags) const {
    workspace.write("app.cfg", "user = me\n");
    workspace.openToAll();
    const auto client = start(Json::object(), flags);
    const std::string sandbox = create(*client);
    execute(*client, sandbox,
            "for f in .env app.cfg id_rsa; do echo mine >$f; done; rm -rf d; mkdir d; echo mine >d/a.dump");
    workspace.write(".env", std::string("K=") + kLate + "\n");
    workspace.write("id_rsa", std::string(kLate) + "\n");
    workspace.write("d/id_rsa", std::string(kLate) + "\n");
    workspace.write("d/a.dump", std::string(kLate) + "\n");
    workspace.write("app.cfg", std::string("password = ") + kLate + "\n");
    const Json shown = client->tool("sandbox_diff", {{"sandbox_id", sandbox}, {"patch", true}});
    EXPECT_TRUE(shown.contains("patch")) << shown;
    EXPECT_EQ(shown.dump().find(kLate), std::string::npos) << shown;
    EXPECT_NE(shown.dump().find("hidden on the host"), std::string::npos) << shown;
  }
};

TEST_F(McpHostSecrets, DiffLeavesOutTheirContent) { expectDiffWithoutSecrets({"--deny", "d/*.dump"}); }

TEST_F(McpHostSecrets, DiffOfAReadOnlyDirectoryLeavesOutTheirContent) {
  expectDiffWithoutSecrets({"--workspace", workspace.path() + ":ro", "--read-only", "--deny", "d/*.dump"});
}

TEST_F(McpHostSecrets, DiffAtTheSamePathLeavesOutTheirContent) {
  expectDiffWithoutSecrets({"--same-path", "--deny", "d/*.dump"});
}

TEST_F(McpHostSecrets, CommitWithoutPathsHoldsBackDeniedPaths) {
  workspace.write("priv/key", "k");
  workspace.openToAll();
  const auto client = start(Json::object(), {"--workspace", workspace.path(), "--deny", "priv", "--allow-commit"});
  const std::string sandbox = create(*client);
  execute(*client, sandbox, "mkdir -p priv; echo x >priv/run.sh; echo x >priv/note.txt; echo x >ok.txt");
  const Json done = client->tool("sandbox_commit", {{"sandbox_id", sandbox}});
  EXPECT_EQ(done.value("committed", false), true) << done;
  EXPECT_EQ(readFile(workspace / "ok.txt"), "x\n");
  EXPECT_FALSE(std::filesystem::exists(workspace / "priv/run.sh")) << done;
  EXPECT_FALSE(std::filesystem::exists(workspace / "priv/note.txt")) << done;
  EXPECT_NE(done["held"].dump().find("priv/note.txt"), std::string::npos) << done;
}

TEST_F(McpHostSecrets, CommitWritesNothingBelowReadOnlyPaths) {
  workspace.write("v/w/x/a.txt", "1\n");
  workspace.openToAll();
  const auto client =
      start(Json::object(), {"--workspace", workspace.path(), "--ro", workspace / "v/w", "--allow-commit"});
  const std::string sandbox = create(*client, {{"workspace_path", workspace / "v/w/x"}});
  execute(*client, sandbox, "echo x >b.txt");
  for (const Json& paths : {Json::array(), Json::array({"b.txt"})}) {
    const Json done = client->tool("sandbox_commit", {{"sandbox_id", sandbox}, {"paths", paths}});
    EXPECT_EQ(done.value("committed", true), false) << done;
    EXPECT_NE(done["held"].dump().find("read-only"), std::string::npos) << done;
  }
  EXPECT_FALSE(std::filesystem::exists(workspace / "v/w/x/b.txt"));
}

TEST_F(McpHostSecrets, CommitWritesNothingToTheOwnConfiguration) {
  std::filesystem::create_directories(home / "config");
  std::filesystem::create_symlink(workspace / "caisson", home / "config/caisson");
  auto variables = environment();
  variables["XDG_CONFIG_HOME"] = home / "config";
  const std::vector<std::string> flags{"--workspace", workspace.path(), "--allow-commit"};
  McpClient client(flags, variables, Json::object());
  const std::string sandbox = create(client);
  execute(client, sandbox, "mkdir caisson; echo '[alerts]' >caisson/config.toml; echo x >ok.txt");
  const Json done = client.tool("sandbox_commit", {{"sandbox_id", sandbox}});
  EXPECT_EQ(readFile(workspace / "ok.txt"), "x\n");
  EXPECT_NE(done["skipped"].dump().find("caisson/config.toml"), std::string::npos) << done;
  const Json named =
      client.call("sandbox_commit", {{"sandbox_id", sandbox}, {"paths", Json::array({"caisson/config.toml"})}});
  EXPECT_FALSE(std::filesystem::exists(workspace / "caisson")) << named;
}

TEST_F(McpHostSecrets, DeniedPathThroughALinkIsRefusedAtTheStart) {
  workspace.write("real/x/key", "k");
  std::filesystem::create_symlink("real", workspace / "lnk");
  workspace.openToAll();
  const RunOutput started =
      runCaisson({"mcp", "--workspace", workspace.path(), "--deny", "lnk/x"}, {.env = environment()});
  EXPECT_NE(started.exit_status, 0) << started.describe();
  EXPECT_NE(started.err.find(workspace / "real/x"), std::string::npos) << started.describe();
}

TEST_F(McpHostSecrets, DeniedPathThroughALinkMadeLaterIsRefused) {
  workspace.write("real/x/key", "k");
  workspace.openToAll();
  const auto client = start(Json::object(), {"--workspace", workspace.path(), "--deny", "lnk/x"});
  create(*client);  // the server has started
  std::filesystem::create_symlink("real", workspace / "lnk");
  const Json made = client->call("sandbox_create", {{"workspace_path", workspace / "real"}});
  EXPECT_EQ(made.value("isError", false), true) << made;
  EXPECT_NE(made.dump().find("symbolic link"), std::string::npos) << made;
}

}  // namespace
}  // namespace caisson::test
