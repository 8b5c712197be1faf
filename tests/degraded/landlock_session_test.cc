// Sessions and MCP where namespaces are forbidden: a copy of the workspace, or the workspace itself, and a run for each
// command.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "degraded/degraded.h"
#include "functional/mcp_client.h"

namespace caisson::test {
namespace {

constexpr const char* kLosses = "landlock tier: no namespaces. Not protected";

class LandlockSession : public DegradedTest {
 protected:
  void SetUp() override {
    DegradedTest::SetUp();
    workspace.write("file", "original\n");
    workspace.write("dir/old", "old\n");
    workspace.write(".env", "TOKEN=secret\n");
    workspace.openToAll();
  }

  void TearDown() override {  // root's files are not below CAISSON_HOME
    std::istringstream lines(session({"list"}).out);
    for (std::string line; std::getline(lines, line);) (void)session({"destroy", line.substr(0, line.find(' '))});
  }

  [[nodiscard]] RunOutput session(std::vector<std::string> arguments, const std::string& input = {}) const {
    arguments.insert(arguments.begin(), "session");
    return caissonWithout("namespaces", arguments, {.stdin_data = input, .env = {{"CAISSON_HOME", home.path()}}});
  }
  [[nodiscard]] std::string create(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"create", "--tier", "landlock"});
    const RunOutput made = session(std::move(options));
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }
  [[nodiscard]] std::string ofWorkspace() const { return create({"--workspace", workspace.path()}); }
  [[nodiscard]] RunOutput sh(const std::string& id, const std::string& script) const {
    return session({"exec", id, "--", "sh", "-c", script});
  }
};

TEST_F(LandlockSession, WorksOnACopyThatLastsBetweenCommands) {
  const std::string id = ofWorkspace();
  EXPECT_EQ(sh(id, "cat file; echo changed > file; echo mine > $HOME/note; echo t > $TMPDIR/t").out, "original\n");
  const RunOutput second =
      sh(id, "cat file $HOME/note $TMPDIR/t; cat " + (workspace / "file") + "; echo x > " + (workspace / "new"));
  EXPECT_EQ(second.out, "changed\nmine\nt\n") << second.describe();
  EXPECT_EQ(readFile(workspace / "file"), "original\n");
  EXPECT_FALSE(exists(workspace / "new"));
  EXPECT_EQ(session({"destroy", id}).exit_status, 0);
  EXPECT_EQ(session({"list"}).out, "");
}

TEST_F(LandlockSession, LeavesSecretsOutOfTheCopyAndInTheWorkspace) {
  const std::string id = ofWorkspace();
  const RunOutput looked = sh(id, "ls -A; cat .env; cat " + (workspace / ".env"));
  EXPECT_EQ(looked.out, "dir\nfile\n") << looked.describe();
  EXPECT_EQ(session({"diff", id}).out, "");
  EXPECT_EQ(session({"commit", id}).exit_status, 0);
  EXPECT_EQ(readFile(workspace / ".env"), "TOKEN=secret\n");
}

TEST_F(LandlockSession, DiffAndCommitCompareWithTheInitialState) {
  const std::string id = ofWorkspace();
  EXPECT_EQ(session({"diff", id}).out, "");
  EXPECT_EQ(sh(id, "echo changed > file; rm dir/old; mkdir n; echo new > n/f; ln -s f n/l").exit_status, 0);
  // Files that the host creates meanwhile do not belong to the session.
  workspace.write("host", "of the host\n");
  EXPECT_EQ(session({"diff", id}).out, "D dir/old\nM file\nA n/\nA n/f\nA n/l\n");
  const RunOutput committed = session({"commit", id});
  EXPECT_EQ(committed.exit_status, 0) << committed.describe();
  EXPECT_EQ(readFile(workspace / "file"), "changed\n");
  EXPECT_EQ(readFile(workspace / "n/f"), "new\n");
  EXPECT_EQ(readFile(workspace / "host"), "of the host\n");
  EXPECT_FALSE(exists(workspace / "dir/old"));
  EXPECT_EQ(session({"diff", id}).out, "") << "what was committed is still a change";
}

TEST_F(LandlockSession, CommitKeepsADirectoryWithAHiddenFile) {
  workspace.write("conf/.env", "TOKEN=secret\n");
  workspace.write("conf/x", "x\n");
  const std::string id = ofWorkspace();
  EXPECT_EQ(sh(id, "rm -r conf dir").exit_status, 0);
  const RunOutput committed = session({"commit", id});
  EXPECT_EQ(committed.exit_status, 1) << committed.describe();
  EXPECT_TRUE(contains(committed.err, "conf: it holds conf/.env, which was hidden")) << committed.describe();
  EXPECT_EQ(committed.out, "D dir/ (with everything in it)\n") << committed.describe();
  EXPECT_EQ(readFile(workspace / "conf/.env"), "TOKEN=secret\n");
}

TEST_F(LandlockSession, CommitKeepsWhatTheHostChangedMeanwhile) {
  const std::string id = ofWorkspace();
  EXPECT_EQ(sh(id, "echo mine > file").exit_status, 0);
  workspace.write("file", "of the host\n");
  const RunOutput committed = session({"commit", id});
  EXPECT_NE(committed.exit_status, 0) << committed.describe();
  EXPECT_TRUE(contains(committed.err, "conflict")) << committed.describe();
  EXPECT_EQ(readFile(workspace / "file"), "of the host\n");
}

TEST_F(LandlockSession, WritesToTheWorkspaceDirectlyIfAsked) {
  ASSERT_EQ(::chmod(workspace.path().c_str(), 0777), 0);  // the payload of a root caller is another user
  const std::string id = create({"--workspace", workspace.path() + ":rw"});
  const RunOutput wrote = sh(id, "pwd; echo direct > new");
  EXPECT_EQ(wrote.out, workspace.path() + "\n") << wrote.describe();
  EXPECT_EQ(readFile(workspace / "new"), "direct\n");
  for (const char* verb : {"diff", "commit", "export"}) {
    const RunOutput refused = session({verb, id});
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "writes to the workspace directly")) << refused.describe();
  }
}

TEST_F(LandlockSession, RefusesWhatNeedsNamespacesWithTheReason) {
  const std::string id = ofWorkspace();
  const std::vector<std::pair<std::vector<std::string>, std::string>> refusals{
      {{"checkpoint", id}, "layers of an overlay"},
      {{"restore", id, "begin"}, "layers of an overlay"},
      {{"fork", id}, "layers of an overlay"},
      {{"exec", id, "--background", "--", "true"}, "pid namespace"},
      {{"expose", id, "8080"}, "network namespace"},
      {{"create", "--tier", "landlock", "--auto-checkpoint", "--workspace", workspace.path()}, "layer of an overlay"},
      {{"create", "--tier", "landlock", "--workspace", workspace.path() + ":ro"}, "DIR:rw"}};
  for (const auto& [arguments, reason] : refusals) {
    const RunOutput refused = session(arguments);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, reason)) << refused.describe();
  }
}

TEST_F(LandlockSession, ReportsItsLossesOnceAndInEachResult) {
  const RunOutput made = session({"create", "--tier", "landlock", "--workspace", workspace.path()});
  EXPECT_TRUE(contains(made.err, kLosses)) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput plain = session({"exec", id, "--", "true"});
  EXPECT_FALSE(contains(plain.err, kLosses)) << plain.describe();
  const RunOutput json = session({"exec", id, "--json", "--", "true"});
  EXPECT_TRUE(contains(json.json()["warnings"].dump(), kLosses)) << json.describe();
  EXPECT_EQ(json.json().value("sandbox_id", ""), id) << json.describe();
}

TEST_F(LandlockSession, IsUsedAsFallbackOnlyWhenAllowed) {
  const RunOutput refused = session({"create", "--workspace", workspace.path()});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  const RunOutput made = session({"create", "--workspace", workspace.path(), "--allow-weaker", "landlock"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_TRUE(contains(made.err, kLosses)) << made.describe();
  EXPECT_EQ(sh(made.out.substr(0, made.out.find('\n')), "cat file").out, "original\n");
}

TEST_F(LandlockSession, RefusesAHomeDirectory) {
  const RunOutput refused =
      caissonWithout("namespaces", {"session", "create", "--tier", "landlock", "--workspace", workspace.path()},
                     {.env = {{"CAISSON_HOME", home.path()}, {"HOME", workspace.path()}}});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "--show-secrets")) << refused.describe();
}

TEST_F(LandlockSession, EndsTheProcessesOfACommandWithIt) {
  const std::string id = ofWorkspace();
  const RunOutput ran = sh(id, "setsid sleep 300 & echo $!");
  const std::string pid = ran.out.substr(0, ran.out.find('\n'));
  ASSERT_FALSE(pid.empty()) << ran.describe();
  EXPECT_FALSE(exists("/proc/" + pid)) << ran.describe();
}

TEST_F(LandlockSession, CleanRemovesRootsFilesOfASessionWhoseHomeIsGone) {
  requireOrSkip(runsAsRoot(), "files of other users are below CAISSON_HOME");
  const std::string id = ofWorkspace();
  const std::string copy = sh(id, "pwd").out;
  const std::string directory = copy.substr(0, copy.find(id) + id.size());
  ASSERT_TRUE(exists(directory)) << copy;
  const auto clean = [&] {
    EXPECT_EQ(runCaisson({"clean"}, {.env = {{"CAISSON_HOME", files.path()}}}).exit_status, 0);
  };
  clean();
  EXPECT_TRUE(exists(directory)) << "of a session of another CAISSON_HOME";
  ASSERT_EQ(std::rename((home / "sessions").c_str(), (home / "gone").c_str()), 0);
  // Another process that removes it may not have finished when ours returns.
  EXPECT_TRUE(eventually([&] {
    clean();
    return !exists(directory);
  }));
}

TEST_F(LandlockSession, CleanRemovesFilesThatAKilledCleanLeft) {
  requireOrSkip(runsAsRoot(), "files of other users are below CAISSON_HOME");
  const std::string id = ofWorkspace();
  const std::string copy = sh(id, "mkdir many; cd many; seq 5000 | xargs touch; cd ..; pwd").out;
  const std::size_t end = copy.find(id);
  ASSERT_NE(end, std::string::npos) << copy;
  const std::string all = copy.substr(0, end), directory = all + id;
  const auto left = [&] { return runProgram({"find", all, "-maxdepth", "1", "-name", "*" + id}).out; };
  ASSERT_EQ(left(), directory + "\n");
  ASSERT_EQ(std::rename((home / "sessions").c_str(), (home / "gone").c_str()), 0);
  const RunOptions how{.env = {{"CAISSON_HOME", files.path()}}};
  {
    const BackgroundProgram clean({caissonBinary(), "clean"}, how);
    ASSERT_TRUE(eventually([&] { return !exists(directory + "/session"); }));
    clean.signal(SIGKILL);
  }
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(runCaisson({"clean"}, how).exit_status, 0);
    return left().empty();
  })) << left();
}

TEST_F(LandlockSession, CleanRemovesFilesWithoutASessionsNameAfterSevenDays) {
  requireOrSkip(runsAsRoot(), "files of other users are below CAISSON_HOME");
  const std::string id = ofWorkspace();
  const std::string copy = sh(id, "pwd").out;
  const std::string directory = copy.substr(0, copy.find(id) + id.size());
  ASSERT_EQ(unlink((directory + "/session").c_str()), 0);
  const auto cleanWhenUnchangedFor = [&](const char* days) {
    EXPECT_EQ(runProgram({"touch", "-d", std::string(days) + " days ago", directory}).exit_status, 0);
    EXPECT_EQ(runCaisson({"clean"}, {.env = {{"CAISSON_HOME", files.path()}}}).exit_status, 0);
  };
  cleanWhenUnchangedFor("6");
  EXPECT_TRUE(exists(directory)) << "its session may be one that is being made";
  EXPECT_TRUE(eventually([&] {
    cleanWhenUnchangedFor("8");
    return !exists(directory);
  }));
}

TEST_F(LandlockSession, ReadsAndWritesFilesOfTheCopyOnly) {
  const std::string id = ofWorkspace();
  ASSERT_EQ(sh(id, "ln -s " + workspace.path() + " out").exit_status, 0);
  EXPECT_EQ(session({"read", id, "/workspace/file"}).out, "original\n");
  EXPECT_EQ(session({"write", id, "dir/new"}, "text\n").exit_status, 0);
  EXPECT_EQ(sh(id, "cat dir/new").out, "text\n");
  EXPECT_NE(session({"read", id, "out/file"}).exit_status, 0);
  EXPECT_NE(session({"write", id, "out/planted"}, "x").exit_status, 0);
  EXPECT_FALSE(exists(workspace / "planted"));
}

TEST_F(LandlockSession, ServesMcp) {
  using nlohmann::json;
  McpClient server({"--workspace", workspace.path(), "--allow-weaker", "landlock"},
                   {{"CAISSON_HOME", home.path()}, {"CAISSON_LOG", "off"}}, json::object(),
                   {"/proc/self/exe", kWithoutFlag, "namespaces", "--"});
  const json discovered = server.request("server/discover", json::object());
  EXPECT_TRUE(contains(discovered.dump(), kLosses)) << discovered;
  const json made = server.tool("sandbox_create", json::object());
  const std::string id = made.value("sandbox_id", "");
  ASSERT_FALSE(id.empty()) << made;
  EXPECT_TRUE(contains(made["warnings"].dump(), kLosses)) << made;
  const json ran = server.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "pwd; cat file; echo y > made"}});
  EXPECT_EQ(ran.value("stdout", ""), made.value("directory", "?") + "\noriginal\n") << ran;
  EXPECT_TRUE(contains(ran["warnings"].dump(), kLosses)) << ran;
  const json read = server.tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "/workspace/made"}});
  EXPECT_TRUE(contains(read.dump(), "y\\n")) << read;
  EXPECT_FALSE(
      server.tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "w"}, {"content", "z"}}).contains("error"));
  const json inside =
      server.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat w"}, {"working_dir", "/workspace"}});
  EXPECT_EQ(inside.value("stdout", ""), "z") << inside;
  EXPECT_TRUE(contains(server.tool("sandbox_list", json::object()).dump(), id));
  const json background =
      server.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "sleep 9"}, {"background", true}});
  EXPECT_TRUE(contains(background.dump(), "pid namespace")) << background;
  const json slow = server.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "sleep 300"}, {"wait_ms", 0}});
  EXPECT_EQ(slow.value("status", ""), "running") << slow;
  EXPECT_FALSE(server.tool("sandbox_destroy", {{"sandbox_id", id}}).contains("error"));
  EXPECT_FALSE(contains(server.tool("sandbox_list", json::object()).dump(), id));
  EXPECT_EQ(readFile(workspace / "file"), "original\n");
}

}  // namespace
}  // namespace caisson::test
