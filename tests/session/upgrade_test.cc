// Sessions that live through an upgrade: the programs are replaced by rename, as packages do it, while supervisors run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>

#include "functional/mcp_client.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::seconds;

/// The broker needs an authority to start; this one has signed nothing.
constexpr const char* kAuthority =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBdTCCARugAwIBAgIUP2u8xwRiF3/7TjXGZTBnZkwrdZEwCgYIKoZIzj0EAwIw\n"
    "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTcxMTQ5MTFaGA8yMTI2MTAyNDExNDkx\n"
    "MVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABK/I\n"
    "fbi4SBW+/4zFNTE04yb/sCh9+btttxRIvkHQTuzK52gHwz9gz8cz+C4omutN8sgA\n"
    "gd2Nybln/rssdQiKtLijUzBRMB0GA1UdDgQWBBQButxnGUQmJgGy4dpiK73tcWUh\n"
    "KDAfBgNVHSMEGDAWgBQButxnGUQmJgGy4dpiK73tcWUhKDAPBgNVHRMBAf8EBTAD\n"
    "AQH/MAoGCCqGSM49BAMCA0gAMEUCIANsHDeAzqaMm3/t4TlW9FghvhyFUmQGSZpG\n"
    "GDi6ipT1AiEA0GASsQaJ6yH+HOTpD9n/4TZ4VM6ZySlj9O7pP69J8B4=\n"
    "-----END CERTIFICATE-----\n";

/// An installation in a directory of the test's: bin/caisson, libexec/caisson/*. CAISSON_BIN leads to it.
class Installation {
 public:
  Installation() {
    directory_.openToAll();
    for (const char* name : {"bin", "libexec/caisson"}) fs::create_directories(directory_ / name);
    put(built_, "bin/caisson");
    forEachCompanion([&](const fs::path& path) { put(path, "libexec/caisson/" + path.filename().string()); });
    ::setenv("CAISSON_BIN", (directory_ / "bin/caisson").c_str(), 1);
  }
  ~Installation() { ::setenv("CAISSON_BIN", built_.c_str(), 1); }
  Installation(const Installation&) = delete;
  Installation& operator=(const Installation&) = delete;

  /// Replaces every program: caisson by `program`, the others by files with other bytes.
  void upgradeTo(const std::string& program) const {
    put(program, "bin/caisson");
    forEachCompanion(
        [&](const fs::path& path) { put(path, "libexec/caisson/" + path.filename().string(), "another build"); });
  }

 private:
  static void forEachCompanion(const std::function<void(const fs::path&)>& visit) {
    static const fs::path directory = fs::path(caissonBinary()).parent_path();  // before CAISSON_BIN is set
    for (const char* name : {"caisson-broker", "caisson-mcp", "caisson-server"}) {
      if (fs::exists(directory / name)) visit(directory / name);
    }
  }
  void put(const std::string& from, const std::string& name, const std::string& appended = {}) const {
    const std::string text = readFile(from) + appended;
    ASSERT_GT(text.size(), appended.size()) << from;
    directory_.write(name + ".new", text, 0755);
    fs::rename(directory_ / (name + ".new"), directory_ / name);
  }

  const TempDir directory_;
  const std::string built_ = caissonBinary();
};

class Upgrade : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    installation = std::make_unique<Installation>();
  }
  void TearDown() override { installation.reset(); }

  /// A session with a file and a background command that runs.
  [[nodiscard]] std::string liveSession(const std::string& policy = {}) const {
    const std::string id = cli.create(policy);
    EXPECT_EQ(cli.script(id, "echo one > one").exit_status, 0);
    cli.start(id, {"sh", "-c", "echo begun; sleep 600; :", cli.marker()});
    EXPECT_TRUE(eventually([&] { return firstLiveProcess(cli.marker()) > 0; }));
    return id;
  }
  /// Runs `session ARGS...`, which must succeed; returns its output.
  std::string session(SessionCli::Words args, const std::string& input = {}) const {
    args.insert(args.begin(), "session");
    const RunOutput output = cli.caisson(args, seconds(30), input);
    EXPECT_EQ(output.exit_status, 0) << args[1] << ": " << output.describe();
    return output.out;
  }
  /// The program of the session's supervisor, as the kernel names it.
  static std::string programOf(pid_t pid) {
    std::error_code problem;
    return fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", problem).string();
  }
  [[nodiscard]] bool runs() const { return firstLiveProcess(cli.marker()) > 0; }

  std::unique_ptr<Installation> installation;
  const SessionCli cli;  // ended before the installation
};

TEST_F(Upgrade, LiveSessionWorksWithTheNextVersion) {
  std::string policy = "[network]\nmode = \"proxy\"\nallowed_hosts = [\"a.example.org\"]\n";
  if (exists(fs::path(caissonBinary()).parent_path() / "../libexec/caisson/caisson-broker")) {
    ::setenv("UPGRADE_TEST_KEY", "test-only-key", 1);
    policy += "[[network.credentials]]\nhost = \"a.example.org\"\nsecret_env = \"UPGRADE_TEST_KEY\"\nca_file = \"" +
              cli.home.write("authority.pem", kAuthority) + "\"\n";
  }
  const std::string id = liveSession(policy);
  const pid_t supervisor = sessionSupervisor(id), command = firstLiveProcess(cli.marker());
  installation->upgradeTo(builtProgram(NEXT_VERSION));
  if (runsAsRoot()) {  // others may not read it
    EXPECT_TRUE(programOf(supervisor).ends_with("(deleted)")) << programOf(supervisor);
  }

  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
  EXPECT_EQ(session({"write", id, "two"}, "two\n"), "");
  EXPECT_EQ(session({"read", id, "two"}), "two\n");
  EXPECT_NE(session({"ps", id}).find("running"), std::string::npos);
  EXPECT_EQ(session({"logs", id, "1"}), "begun\n");
  EXPECT_NE(session({"list"}).find(id + "  live"), std::string::npos);
  EXPECT_NE(session({"diff", id}).find("one"), std::string::npos);
  session({"renew", id, "2h"});
  session({"network", id, "allow", "b.example.org"});  // through the egress process
  EXPECT_NE(session({"expose", id, "8000"}), "");
  session({"commit", id, "two"});
  EXPECT_EQ(readFile(cli.workspace / "two"), "two\n");
  EXPECT_EQ(firstLiveProcess(cli.marker()), command) << "the command was restarted";
  EXPECT_EQ(sessionSupervisor(id), supervisor);

  // The open port keeps the old version alive: its launcher forks the next supervisor, which starts the egress from a
  // program that has no name any more.
  EXPECT_EQ(session({"checkpoint", id, "--stop", "mark"}), "mark\n");
  EXPECT_FALSE(runs());
  EXPECT_EQ(cli.script(id, "echo three > three; cat one").out, "one\n");
  session({"network", id, "allow", "c.example.org"});
  if (runsAsRoot()) {
    EXPECT_TRUE(programOf(sessionSupervisor(id)).ends_with("(deleted)"));
  }
  session({"restore", id, "--stop", "mark"});
  EXPECT_NE(cli.exec(id, {"cat", "three"}).exit_status, 0);
  const std::string fork = session({"fork", id, "--stop"});
  EXPECT_EQ(cli.exec(fork.substr(0, fork.find('\n')), {"cat", "two"}).out, "two\n");
  session({"expose", id, "--close", "8000"});
  session({"checkpoint", id, "--stop"});
  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
  session({"destroy", id});
  EXPECT_LT(sessionSupervisor(id), 0);
}

TEST_F(Upgrade, LiveSessionOfTheNextVersionWorksAfterADowngrade) {
  const std::string current = readFile(caissonBinary());
  const TempDir kept;
  const std::string older = kept.write("caisson", current, 0755);
  installation->upgradeTo(builtProgram(NEXT_VERSION));
  const std::string id = liveSession();
  installation->upgradeTo(older);
  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
  EXPECT_TRUE(runs());
  EXPECT_EQ(session({"checkpoint", id, "--stop", "mark"}), "mark\n");
  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
}

/// Before the protocol had versions, a supervisor that could not be understood was taken for a dead one and killed.
TEST_F(Upgrade, SessionOfAnIncompatibleVersionIsRefusedAndNotKilled) {
  const std::string id = liveSession();
  EXPECT_NE(session({"expose", id, "8000"}), "");  // keeps the supervisor alive without a sandbox
  const pid_t command = firstLiveProcess(cli.marker());
  installation->upgradeTo(builtProgram(LATER_VERSION));
  const std::vector<SessionCli::Words> refused{{"exec", id, "--", "true"},
                                               {"exec", id, "--background", "--", "true"},
                                               {"read", id, "one"},
                                               {"write", id, "two"},
                                               {"checkpoint", id},
                                               {"restore", id, "begin"},
                                               {"fork", id},
                                               {"commit", id},
                                               {"stop", id, "1"},
                                               {"expose", id, "8000"}};
  for (SessionCli::Words args : refused) {
    args.insert(args.begin(), "session");
    const RunOutput output = cli.caisson(args);
    EXPECT_EQ(output.exit_status, 125) << args[1] << ": " << output.describe();
    for (const char* part : {"started by caisson ", "version 8 of the session protocol", "speaks version 9",
                             "caisson session checkpoint --stop"})
      EXPECT_NE(output.err.find(part), std::string::npos) << args[1] << ": " << output.describe();
  }
  EXPECT_NE(session({"list"}).find(id + "  live"), std::string::npos);
  EXPECT_NE(session({"info", id}), "");
  EXPECT_EQ(firstLiveProcess(cli.marker()), command) << "its command was killed";

  // The way that the message names: it ends the processes and keeps the files.
  EXPECT_EQ(session({"checkpoint", "--stop", id, "mark"}), "mark\n");
  EXPECT_FALSE(runs());
  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
  EXPECT_NE(session({"ps", id}).find("signal 9"), std::string::npos) << "how its command ended is known";
  session({"destroy", id});
}

TEST_F(Upgrade, RefusedRenewAndNetworkLeaveTheMetadataUnchanged) {
  const std::string id = liveSession("[network]\nmode = \"proxy\"\nallowed_hosts = [\"a.example.org\"]\n");
  installation->upgradeTo(builtProgram(LATER_VERSION));
  const std::string metadata = cli.home / ("state/sessions/" + id + "/meta.json");
  const std::string before = readFile(metadata);
  ASSERT_NE(before, "");
  const std::vector<SessionCli::Words> refused{
      {"renew", id, "9h"}, {"network", id, "allow", "b.example.org"}, {"network", id, "deny", "a.example.org"}};
  for (SessionCli::Words args : refused) {
    args.insert(args.begin(), "session");
    const RunOutput output = cli.caisson(args);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_NE(output.err.find("version 8 of the session protocol"), std::string::npos) << output.describe();
    EXPECT_EQ(readFile(metadata), before) << args[1] << " failed, but was written";
  }
  EXPECT_TRUE(runs());
}

TEST_F(Upgrade, SessionOfAnIncompatibleVersionIsDestroyedOnRequest) {
  const std::string id = liveSession();
  installation->upgradeTo(builtProgram(LATER_VERSION));
  session({"destroy", id});
  EXPECT_TRUE(eventually([&] { return !runs() && sessionSupervisor(id) < 0; }));
  EXPECT_EQ(session({"list"}), "");
}

TEST_F(Upgrade, McpServerKeepsWorkingWithItsSandboxes) {
  McpClient server({"--workspace", cli.workspace.path()}, {{"CAISSON_HOME", cli.home / "state"}});
  const auto execute = [&](const std::string& id, const std::string& script) {
    return server.tool("sandbox_execute", {{"sandbox_id", id}, {"command", script}}).value("stdout", "");
  };
  const std::string id = server.tool("sandbox_create", {{"keep", true}}).value("sandbox_id", "");
  ASSERT_EQ(execute(id, "echo one > one; echo done"), "done\n");
  installation->upgradeTo(builtProgram(NEXT_VERSION));
  EXPECT_EQ(execute(id, "cat one"), "one\n");
  const std::string other = server.tool("sandbox_create", json::object()).value("sandbox_id", "");
  EXPECT_EQ(execute(other, "echo new"), "new\n") << "its supervisor comes from a program without a name";
  EXPECT_EQ(cli.exec(id, {"cat", "one"}).out, "one\n");
  server.closeInput();
  EXPECT_EQ(server.wait(), 0);
  // The next server is of the new version.
  McpClient next({"--workspace", cli.workspace.path()}, {{"CAISSON_HOME", cli.home / "state"}});
  EXPECT_EQ(next.tool("sandbox_execute", {{"sandbox_id", id}, {"command", "cat one"}}).value("stdout", ""), "one\n");
}

TEST_F(Upgrade, HttpServerNamesTheVersionThatItCannotTalkTo) {
  requireOrSkip(hasProgram("curl"), "curl is not installed");
  const std::string socket = cli.home / "socket";
  BackgroundProgram server({caissonBinary(), "serve", "--listen", "none", "--socket", socket}, cli.options());
  ASSERT_TRUE(eventually([&] { return exists(socket); }, seconds(20)));
  installation->upgradeTo(builtProgram(LATER_VERSION));
  const std::string id = liveSession();
  const RunOutput answer =
      runProgram({"curl", "-sS", "--unix-socket", socket, "-H", "Content-Type: application/json", "-d",
                  R"({"command":"true"})", "http://localhost/v1/sandboxes/" + id + "/commands"});
  const json problem = answer.json();
  ASSERT_TRUE(problem.is_object()) << answer.describe();
  EXPECT_EQ(problem.value("status", 0), 409) << answer.out;
  EXPECT_EQ(problem.value("code", ""), "other_version") << answer.out;
  EXPECT_NE(problem.value("reason", "").find("version 9 of the session protocol"), std::string::npos) << answer.out;
  EXPECT_NE(problem.value("try", "").find("checkpoint --stop"), std::string::npos) << answer.out;
  EXPECT_TRUE(runs());
}

}  // namespace
}  // namespace caisson::test
