// Commands work, or fail within 5 s with the cause, while a sibling attacks. Other sessions are not affected.
#include <csignal>

#include "hostile/sibling.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kTimeout{5};

TEST_P(HostileSibling, ReadWorksOrNamesCause) {
  createSession();
  ASSERT_EQ(cli.caisson({"session", "write", id, "note"}, seconds(20), "content").exit_status, 0);
  startAttack();
  const RunOutput output = cli.caisson({"session", "read", id, "note"}, kTimeout);
  EXPECT_TRUE(output.out == "content" || failedWithCause(output)) << output.describe();
}

TEST_P(HostileSibling, WriteWorksOrNamesCause) {
  createAttackedSession();
  const RunOutput output = cli.caisson({"session", "write", id, "note"}, kTimeout, "content");
  EXPECT_TRUE(output.exit_status == 0 || failedWithCause(output)) << output.describe();
}

/// A command stopped by its sibling needs a timeout to end.
TEST_P(HostileSibling, ExecWorksOrNamesCause) {
  createAttackedSession();
  const RunOutput output = cli.exec(id, {"true"}, {"--timeout", "3s"}, kTimeout);
  EXPECT_TRUE(output.exit_status == 0 || (GetParam().kind == "kill-all" && output.exit_status == 137) ||
              failedWithCause(output))
      << output.describe();
}

TEST_P(HostileSibling, CheckpointStopWorks) {
  createAttackedSession();
  const RunOutput output = cli.caisson({"session", "checkpoint", "--stop", id, "point"}, kTimeout);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(eventually([&] { return attackEnded(); }, seconds(2))) << "the attacker lives on";
}

TEST_P(HostileSibling, DestroyWorks) {
  createAttackedSession();
  const RunOutput output = cli.caisson({"session", "destroy", id}, kTimeout);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(eventually([&] { return attackEnded(); }, seconds(2))) << "the attacker lives on";
  EXPECT_EQ(cli.caisson({"session", "list"}, kTimeout).out.find(id), std::string::npos);
}

TEST_P(HostileSibling, WaitingClientEndsOnSignal) {
  createAttackedSession();
  for (const int number : {SIGINT, SIGTERM}) {
    SCOPED_TRACE(number);
    const std::size_t before = cli.events("sandbox_execute").size();
    BackgroundProgram client({caissonBinary(), "session", "exec", id, "--", "sleep", "60"}, cli.options());
    // A command that is refused, or killed by its sibling, ends its client before the signal.
    eventually([&] { return cli.events("sandbox_execute").size() > before || client.wait(milliseconds(0)); });
    client.signal(number);
    EXPECT_TRUE(client.wait(kTimeout)) << "still there 5 s after the signal";
  }
}

class HostileNeighbour : public HostileSibling {
 protected:
  /// A second session of the same user, and the attack in the first.
  void createBoth() {
    createSession();
    other = cli.create();
    startAttack();
  }
  std::string other;
};

TEST_P(HostileNeighbour, ExecWorks) {
  CONFORMS("R-SESSION-5");
  createBoth();
  const RunOutput output = cli.exec(other, {"echo", "works"}, {}, kTimeout);
  EXPECT_EQ(output.out, "works\n") << output.describe();
}

TEST_P(HostileNeighbour, FilesWork) {
  CONFORMS("R-SESSION-5");
  createBoth();
  const RunOutput written = cli.caisson({"session", "write", other, "note"}, kTimeout, "content");
  EXPECT_EQ(written.exit_status, 0) << written.describe();
  const RunOutput read = cli.caisson({"session", "read", other, "note"}, kTimeout);
  EXPECT_EQ(read.out, "content") << read.describe();
}

TEST_P(HostileNeighbour, RunWithProxyWorks) {
  createBoth();
  const RunOutput output = cli.caisson(
      {"run", "--net", "proxy", "--allow-host", "example.org", "--workspace", ":none", "--", "echo", "works"},
      kTimeout);
  EXPECT_EQ(output.out, "works\n") << output.describe();
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Attacked, HostileNeighbour, testing::ValuesIn(allAttacks()), attackName);

}  // namespace caisson::test
