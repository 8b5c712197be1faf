// Background commands outlive their caller; files are copied in and out byte for byte.
#include "functional/session.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/conforms.h"

namespace caisson::test {
namespace {

using SessionBackground = SessionTest;
using SessionFiles = SessionTest;

std::string log(Session& session, std::uint32_t exec, OutputStreamKind stream = OutputStreamKind::out) {
  const auto piece = session.logs(exec, stream, 0, 1 << 20);
  EXPECT_TRUE(piece) << piece.error().message();
  return piece ? piece->data : "";
}

TEST_F(SessionBackground, KeepsRunningAndIsReadLaterByAnotherProcess) {
  CONFORMS("R-SESSION-15");
  Session session = create();
  const RunOutput started = cli({"exec", session.id(), "--background", "--", "sh", "-c",
                                 "echo begin; echo bad >&2; read line; while sleep 0.05; do :; done"});
  ASSERT_EQ(started.exit_status, 0) << started.describe();
  EXPECT_EQ(started.out, "1\n");
  EXPECT_TRUE(eventually([&] { return log(session, 1) == "begin\n"; }));
  EXPECT_TRUE(eventually([&] { return log(session, 1, OutputStreamKind::err) == "bad\n"; }));
  auto infos = session.processes();
  ASSERT_TRUE(infos) << infos.error().message();
  ASSERT_EQ(infos->size(), 1U);
  EXPECT_TRUE(infos->front().running);
  EXPECT_EQ(infos->front().command.front(), "sh");
  EXPECT_NE(cli({"ps", session.id()}).out.find("1  running  sh -c"), std::string::npos);
  EXPECT_EQ(cli({"logs", session.id(), "1"}).out, "begin\n");
  EXPECT_EQ(cli({"stop", session.id(), "1"}).exit_status, 0);
  const auto ended = session.status(1);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->running);
  EXPECT_EQ(ended->signal, 15);
}

TEST_F(SessionBackground, ReportsItsResultAndNumbersIncrease) {
  CONFORMS("R-SESSION-15");
  Session session = create();
  const auto first = session.start({.command = {"sh", "-c", "echo x; exit 3"}});
  ASSERT_TRUE(first) << first.error().message();
  auto info = session.wait(*first, 10);
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->running);
  EXPECT_EQ(info->exit_code, 3);
  EXPECT_EQ(log(session, *first), "x\n");
  const auto second = session.start({.command = {"sleep", "60"}, .timeout_seconds = 0.3});
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, 2U);
  info = session.wait(*second, 10);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->limit, Limit::time);
  const auto missing = session.start({.command = {"no-such-program"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().stage, Stage::exec);
  EXPECT_FALSE(session.status(3)) << "what did not start leaves no record";
  EXPECT_FALSE(session.status(99));
  EXPECT_EQ(output(session, "echo still works"), "still works\n");
}

TEST_F(SessionBackground, ReadsInputUntilEndOfFile) {
  Session session = create();
  const auto exec = session.start({.command = {"sh", "-c", "cat; echo end"}, .keep_input = true});
  ASSERT_TRUE(exec) << exec.error().message();
  ASSERT_TRUE(session.feed(*exec, "one\n", false));
  EXPECT_TRUE(eventually([&] { return log(session, *exec) == "one\n"; }));
  ASSERT_TRUE(session.feed(*exec, "two\n", true));
  const auto info = session.wait(*exec, 10);
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->running);
  EXPECT_EQ(log(session, *exec), "one\ntwo\nend\n");
  EXPECT_FALSE(session.feed(*exec, "late", false));
  const auto given = session.start({.command = {"cat"}, .input = "given"});
  ASSERT_TRUE(given);
  ASSERT_TRUE(session.wait(*given, 10));
  EXPECT_EQ(log(session, *given), "given");
}

// Each command ends as soon as it has its line, often before its input is closed.
TEST_F(SessionBackground, MayEndWhileItsInputIsBeingClosed) {
  Session session = create();
  for (int round = 0; round < 40; ++round) {
    const auto exec = session.start({.command = {"sh", "-c", "read line"}, .keep_input = true});
    ASSERT_TRUE(exec) << exec.error().message();
    const auto fed = session.feed(*exec, "line\n", true);
    ASSERT_TRUE(fed) << "round " << round << ": " << fed.error().message();
    const auto info = session.wait(*exec, 10);
    ASSERT_TRUE(info);
    EXPECT_FALSE(info->running);
  }
}

TEST_F(SessionBackground, LogsAreBoundedAndAFloodDoesNotStopOthers) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("resources.output", "64K"));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  const auto flood = session->start({.command = {"sh", "-c", "yes | head -c 3000000; yes > /dev/stdout"}});
  ASSERT_TRUE(flood) << flood.error().message();
  EXPECT_TRUE(eventually([&] { return log(*session, *flood).size() == 64 * 1024; }));
  EXPECT_EQ(output(*session, "echo quick"), "quick\n");
  ASSERT_TRUE(session->stop(*flood, 0.2));
  const auto info = session->status(*flood);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->out_bytes, 64U * 1024);
  EXPECT_GT(info->out_dropped, 0U);
}

TEST_F(SessionBackground, StopEndsChildrenInOtherGroups) {
  Session session = create();
  const auto exec = session.start({.command = {"sh", "-c", "set -m; trap '' TERM; sleep 4712 & sleep 4712 & wait; :"}});
  ASSERT_TRUE(exec);
  EXPECT_TRUE(eventually([&] { return output(session, "ps ax | grep -c ' [s]leep 4712$' || true") == "2\n"; }));
  ASSERT_TRUE(session.stop(*exec, 0.2));
  EXPECT_EQ(output(session, "ps ax | grep -c ' [s]leep 4712$' || true"), "0\n");
}

/// A checkpoint that stops processes kills the command with its sandbox; the next sandbox must not show it as running.
TEST_F(SessionBackground, IsKilledWithItsSandboxAndNotListedAsRunning) {
  Session session = create();
  const auto exec = session.start({.command = {"sleep", "100"}});
  ASSERT_TRUE(exec) << exec.error().message();
  ASSERT_TRUE(session.checkpoint("p", WhenBusy::stop));
  EXPECT_EQ(output(session, "echo anew"), "anew\n");
  const auto next = session.start({.command = {"sleep", "100"}});
  ASSERT_TRUE(next) << next.error().message();
  const auto all = session.processes();
  ASSERT_TRUE(all && all->size() == 2);
  EXPECT_FALSE(all->front().running) << "a new sandbox is not the old one's life";
  EXPECT_EQ(all->front().signal, SIGKILL);
  EXPECT_TRUE(all->back().running);
}

/// F5: links are resolved below the workspace's root, for reads and writes alike.
TEST_F(SessionFiles, LinksAndMagicLinksCannotLeaveTheSandbox) {
  CONFORMS("R-FILES-11");
  Session session = create();
  const TempDir outside;
  outside.openToAll();
  const Canary canary(outside / "canary");
  output(session, "ln -s " + canary.path() + " absolute; ln -s /proc/self/root magic; ln -s ../../../../../.. up; " +
                      "ln -s /proc/self/cwd cwd");
  for (const std::string& path :
       {std::string("absolute"), "magic" + canary.path(), "up" + canary.path(), "cwd" + canary.path(), canary.path()}) {
    const RunOutput read = cli({"read", session.id(), path});
    EXPECT_FALSE(canary.leakedInto(read.out)) << path << read.describe();
    EXPECT_NE(read.exit_status, 0) << path;
    (void)cli({"write", session.id(), path}, {.stdin_data = "changed"});
    EXPECT_TRUE(canary.untouched()) << path;
  }
}

TEST_F(SessionFiles, AreReadAndWrittenByteForByte) {
  workspace.write("real", "from the host");
  Session session = create();
  const std::string bytes("\0\xff\n binary \x80", 12);
  ASSERT_TRUE(session.write("deep/er/file", bytes));
  EXPECT_EQ(session.read("deep/er/file")->data, bytes);
  EXPECT_EQ(session.read("/workspace/deep/er/file")->data, bytes);
  EXPECT_EQ(output(session, "wc -c < deep/er/file"), "12\n");
  const auto piece = session.read("deep/er/file", 1, 3);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->data, bytes.substr(1, 3));
  EXPECT_EQ(piece->size, bytes.size());
  EXPECT_EQ(session.read("real")->data, "from the host");
  ASSERT_TRUE(session.write("real", "changed"));
  EXPECT_EQ(output(session, "cat real; stat -c %U real"), "changedsandbox\n");
  EXPECT_EQ(readFile(workspace / "real"), "from the host");
  const RunOutput wrote = cli({"write", session.id(), "by-cli"}, {.stdin_data = bytes});
  EXPECT_EQ(wrote.exit_status, 0) << wrote.describe();
  EXPECT_EQ(cli({"read", session.id(), "by-cli"}).out, bytes);
  const auto entries = session.listFiles("deep");
  ASSERT_TRUE(entries) << entries.error().message();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().name, "er");
  EXPECT_EQ(entries->front().type, "directory");
  EXPECT_FALSE(session.read("missing"));
  EXPECT_FALSE(session.write("deep", "a directory is there"));
}

TEST_F(SessionFiles, KeepTheModeOfWhatIsReplacedAndNeverGrantMore) {
  Session session = create();
  output(session, "printf x > script; chmod 750 script");
  ASSERT_TRUE(session.write("script", "y"));
  EXPECT_EQ(output(session, "stat -c %a script; cat script"), "750\ny");
  ASSERT_TRUE(session.write("planted", "z", {.mode = 06755}));
  EXPECT_EQ(output(session, "stat -c %a planted"), "755\n");
}

TEST_F(SessionFiles, AreThereAgainAfterTheSandboxDied) {
  Session session = create();
  ASSERT_TRUE(session.write("a", "1"));
  const auto json = nlohmann::json::parse(readFile(home_path + "/sessions/" + session.id() + "/init.json"));
  ASSERT_EQ(::kill(json["init"]["pid"].get<pid_t>(), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return !session.info()->live; }));
  const auto piece = session.read("a");
  ASSERT_TRUE(piece) << piece.error().message();
  EXPECT_EQ(piece->data, "1");
}

}  // namespace
}  // namespace caisson::test
