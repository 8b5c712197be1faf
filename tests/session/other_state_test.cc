// State on disk of other versions: that of 0.1.0, recorded in state-0.1.0/, is used as it is; that of a newer version
// is refused with both numbers and left as it is.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "support/environment.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSession = "cs-36486f94882b161c655b6fa13de740d8";
/// What cannot be in a repository: empty directories of the session, its upper layers.
constexpr const char* kEmptyDirectories[] = {"sessions/%/empty", "sessions/%/scratch", "stores/%/lower",
                                             "stores/%/mask"};

void replace(std::string& text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " is not in " << text;
  text.replace(at, what.size(), with);
}

class OtherState : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return cli.home / ("state/" + name); }
  [[nodiscard]] RunOutput caisson(const SessionCli::Words& args) const { return cli.caisson(args); }
  /// Changes one file of the state.
  void change(const std::string& name, const std::string& what, const std::string& with) const {
    std::string text = readFile(path(name));
    replace(text, what, with);
    std::ofstream(path(name), std::ios::binary) << text;
  }
  /// Refused, with the format found, the formats known and a way out; and the state is as before.
  void expectRefused(const SessionCli::Words& args, const std::string& file, int found) const {
    const std::string before = readFile(path(file));
    ASSERT_FALSE(before.empty()) << file;
    const RunOutput output = caisson(args);
    EXPECT_NE(output.exit_status, 0) << output.describe();
    EXPECT_NE(output.err.find("it has format " + std::to_string(found) + ", written by "), std::string::npos)
        << output.describe();
    EXPECT_NE(output.err.find(" reads format "), std::string::npos) << output.describe();
    EXPECT_NE(output.err.find("try: "), std::string::npos) << output.describe();
    EXPECT_EQ(readFile(path(file)), before) << file << " was changed";
  }

  const SessionCli cli;
};

class StateOf010 : public OtherState {
 protected:
  /// Copies the recorded state, with this machine's workspace, users and times.
  void SetUp() override {
    OtherState::SetUp();
    if (IsSkipped()) return;
    const std::string fresh = cli.create();
    const std::string own = readFile(path("sessions/" + fresh + "/meta.json"));
    const std::size_t payload = own.find("\"payload_id\":");
    ASSERT_NE(payload, std::string::npos);
    const std::string payload_id = own.substr(payload, own.find(',', payload) - payload);
    ASSERT_EQ(caisson({"session", "destroy", fresh}).exit_status, 0);
    fs::remove_all(path(""));
    fs::create_directories(path(""));
    fs::copy(sourceFile("tests/session/state-0.1.0"), path(""), fs::copy_options::recursive);
    for (std::string name : kEmptyDirectories) {
      replace(name, "%", kSession);
      fs::create_directories(path(name));
    }
    fs::create_directories(path(std::string("stores/") + kSession + "/" + upper()));
    const std::string metadata = std::string("sessions/") + kSession + "/meta.json";
    change(metadata, "@WORKSPACE@", cli.workspace.path());
    change(metadata, "\"payload_id\":0", payload_id);
    const std::time_t now = std::time(nullptr);
    change("approvals/approvals.json", "@GIVEN@", std::to_string(now - 60));
    change("approvals/approvals.json", "@EXPIRES@", std::to_string(now + 86400));
    const unsigned owner =
        static_cast<unsigned>(std::strtoul(payload_id.c_str() + payload_id.find(':') + 1, nullptr, 10));
    ::chmod(path("").c_str(), 0700);
    for (const auto& entry : fs::recursive_directory_iterator(path(""))) {
      ::chmod(entry.path().c_str(), entry.is_directory() ? 0700 : 0600);
      const bool in_layer = entry.path().string().starts_with(path(std::string("stores/") + kSession + "/"));
      if (in_layer && runsAsRoot()) {
        ASSERT_EQ(::chown(entry.path().c_str(), owner, owner), 0);
      }
    }
    cli.workspace.write("base.txt", "base\n", 0666);
  }
  static std::string upper() {
    const std::string text =
        readFile(sourceFile(std::string("tests/session/state-0.1.0/sessions/") + kSession + "/meta.json"));
    const std::size_t at = text.find("\"upper\":\"") + 9;
    return text.substr(at, text.find('"', at) - at);
  }
};

TEST_F(StateOf010, SessionIsUsedWithItsCheckpointsAndLogs) {
  EXPECT_NE(caisson({"session", "list"}).out.find(std::string(kSession)), std::string::npos);
  EXPECT_EQ(cli.exec("work", {"cat", "base.txt", "one.txt", "two.txt"}).out, "changed\nfirst\nsecond\n");
  EXPECT_NE(caisson({"session", "ps", "work"}).out.find("exited 3"), std::string::npos);
  EXPECT_EQ(caisson({"session", "logs", "work", "1"}).out, "out\n");
  EXPECT_NE(caisson({"session", "checkpoints", "work"}).out.find("mark"), std::string::npos);
  const RunOutput restored = caisson({"session", "restore", "--stop", "work", "mark"});
  EXPECT_EQ(restored.exit_status, 0) << restored.describe();
  EXPECT_EQ(cli.exec("work", {"ls"}).out, "base.txt\none.txt\npayload\n");
  const RunOutput committed = caisson({"session", "commit", "--stop", "work", "one.txt"});
  EXPECT_EQ(committed.exit_status, 0) << committed.describe();
  EXPECT_EQ(readFile(cli.workspace / "one.txt"), "first\n");
  EXPECT_EQ(caisson({"session", "destroy", "work"}).exit_status, 0);
}

TEST_F(StateOf010, ApprovalsTokensToolsAndQuarantineStay) {
  EXPECT_NE(caisson({"approvals", "list"}).out.find("host:example.org"), std::string::npos);
  EXPECT_NE(caisson({"token", "list"}).out.find("  ci  read,exec"), std::string::npos);
  EXPECT_EQ(caisson({"token", "create", "second"}).exit_status, 0);
  const RunOutput both = caisson({"token", "list"});
  EXPECT_NE(both.out.find("  ci  "), std::string::npos) << both.describe();
  EXPECT_NE(both.out.find("  second  "), std::string::npos) << both.describe();
  const RunOutput tools = caisson({"tool", "list"});
  EXPECT_NE(tools.out.find("greet"), std::string::npos) << tools.describe();
  EXPECT_NE(tools.out.find("badtool"), std::string::npos) << tools.describe();
  EXPECT_EQ(caisson({"tool", "run", "greet"}).out, "hello\n");
}

TEST_F(StateOf010, AuditLogIsContinued) {
  const RunOutput before = caisson({"audit", "verify"});
  EXPECT_EQ(before.exit_status, 0) << before.describe();
  EXPECT_EQ(cli.exec("work", {"true"}).exit_status, 0);
  const RunOutput after = caisson({"audit", "verify"});
  EXPECT_EQ(after.exit_status, 0) << after.describe();
  EXPECT_NE(after.out, before.out);
  EXPECT_TRUE(cli.events("log_head_lost").empty());
  EXPECT_EQ(cli.events("log_started").size(), 1U) << "a second chain was begun";
}

using NewerState = OtherState;

TEST_F(NewerState, SessionIsRefusedAndSurvivesClean) {
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo kept > kept").exit_status, 0);
  ASSERT_EQ(caisson({"session", "checkpoint", "--stop", id, "mark"}).exit_status, 0);
  const std::string file = "sessions/" + id + "/meta.json";
  change(file, "\"format\":1", "\"format\":2");
  change(file, "\"ttl_ms\"", "\"ttl_of_a_later_version\"");
  for (const SessionCli::Words& args : {SessionCli::Words{"session", "exec", id, "--", "true"},
                                        {"session", "read", id, "kept"},
                                        {"session", "checkpoint", id},
                                        {"session", "commit", id},
                                        {"session", "diff", id},
                                        {"session", "renew", id, "1h"},
                                        {"clean", "--all"}})
    expectRefused(args, file, 2);
  EXPECT_NE(caisson({"session", "list"}).out.find(id), std::string::npos);
  EXPECT_EQ(caisson({"clean"}).exit_status, 0);
  EXPECT_TRUE(exists(path(file)));
  // Its files are there for the version that understands it.
  change(file, "\"format\":2", "\"format\":1");
  change(file, "\"ttl_of_a_later_version\"", "\"ttl_ms\"");
  EXPECT_EQ(cli.exec(id, {"cat", "kept"}).out, "kept\n");
}

TEST_F(NewerState, SessionDoesNotLoseItsNameOrItsLayersToAnother) {
  const std::string id = cli.create("", {"--name", "work"});
  ASSERT_EQ(cli.script(id, "echo kept > kept").exit_status, 0);
  const RunOutput forked = caisson({"session", "fork", "--stop", id});
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  const std::string fork = forked.out.substr(0, forked.out.find('\n'));
  const std::string file = "sessions/" + id + "/meta.json";
  change(file, "\"format\":1", "\"format\":2");
  expectRefused({"session", "create", "--name", "work"}, file, 2);
  EXPECT_EQ(caisson({"session", "destroy", fork}).exit_status, 0);  // shares layers with it
  change(file, "\"format\":2", "\"format\":1");
  EXPECT_EQ(cli.exec("work", {"cat", "kept"}).out, "kept\n");
}

TEST_F(NewerState, SessionIsDestroyedOnRequest) {
  const std::string id = cli.create();
  change("sessions/" + id + "/meta.json", "\"format\":1", "\"format\":2");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
  EXPECT_FALSE(exists(path("sessions/" + id)));
}

TEST_F(NewerState, InterruptedCommitIsLeftToItsVersion) {
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo x > x").exit_status, 0);
  const std::string file = "sessions/" + id + "/commit.journal";
  std::ofstream(path("sessions/" + id + "/commit.staging")).flush();
  std::ofstream(path(file)) << "caisson commit journal 8\nsomething else";
  expectRefused({"session", "commit", id}, file, 8);
}

TEST_F(NewerState, ApprovalsAreRefused) {
  fs::create_directories(path("approvals"));
  ::chmod(path("").c_str(), 0700);
  ::chmod(path("approvals").c_str(), 0700);
  std::ofstream(path("approvals/approvals.json")) << "{\"format_version\":2,\"approvals\":{\"host\":[]}}\n";
  expectRefused({"approvals", "list"}, "approvals/approvals.json", 2);
  expectRefused({"run", "--approve", "level:none", "--level", "none", "--", "true"}, "approvals/approvals.json", 2);
}

TEST_F(NewerState, TokensAreRefusedAndTheServerDoesNotStart) {
  ASSERT_EQ(caisson({"token", "create", "ci"}).exit_status, 0);
  change("server/tokens.json", "\"format_version\": 1", "\"format_version\": 2");
  expectRefused({"token", "list"}, "server/tokens.json", 2);
  expectRefused({"token", "create", "other"}, "server/tokens.json", 2);
  expectRefused({"token", "revoke", "ci"}, "server/tokens.json", 2);
  expectRefused({"serve", "--listen", "none", "--socket", cli.home / "socket"}, "server/tokens.json", 2);
}

TEST_F(NewerState, ToolIsRefused) {
  ASSERT_EQ(caisson({"tool", "add", "greet", "--profile", "strict", "--", "/bin/echo", "hello"}).exit_status, 0);
  change("tools/greet.json", "\"format_version\": 1", "\"format_version\": 2");
  expectRefused({"tool", "run", "greet"}, "tools/greet.json", 2);
}

TEST_F(NewerState, AuditLogIsNotContinued) {
  ASSERT_EQ(caisson({"run", "--workspace", ":none", "--", "true"}).exit_status, 0);
  std::string head = readFile(path("audit/head"));
  for (const std::size_t slot : {std::size_t{0}, head.size() / 2}) {
    if (head.compare(slot, 7, "caisaud") == 0) head[slot + 7] = 2;
  }
  std::ofstream(path("audit/head"), std::ios::binary) << head;
  const std::string log = readFile(path("audit/00000001.jsonl"));
  expectRefused({"run", "--workspace", ":none", "--", "true"}, "audit/head", 2);
  expectRefused({"audit", "verify"}, "audit/head", 2);
  EXPECT_EQ(readFile(path("audit/00000001.jsonl")), log);
  EXPECT_FALSE(exists(path("audit/00000002.jsonl")));
}

TEST_F(NewerState, ImageStoreIsRefused) {
  fs::create_directories(path("images"));
  ::chmod(path("").c_str(), 0700);
  ::chmod(path("images").c_str(), 0700);
  std::ofstream(path("images/format")) << "2\n";
  expectRefused({"run", "--workspace", ":none", "--image", "debian", "--", "true"}, "images/format", 2);
  EXPECT_FALSE(exists(path("images/index.json")));
}

}  // namespace
}  // namespace caisson::test
