// SessionStore::exec, for one-shot callers: must behave like a session that was opened.
#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionOneShot : public SessionTest {
 protected:
  RunResult once(const std::string& id_or_name, const std::string& script) {
    auto result = store->exec(id_or_name, {.command = {"sh", "-c", script}});
    EXPECT_TRUE(result) << result.error().message();
    return result ? *std::move(result) : RunResult{};
  }
};

constexpr const char* kLayers =
    "grep -E '^(Seccomp|NoNewPrivs|Cap|Uid|Gid|Groups)' /proc/self/status; ulimit -a; env | sort; pwd; id; nproc; "
    "ls -l /proc/self/fd | wc -l; cat /proc/self/attr/current 2>&1; ls / /proc/1/fd 2>&1";

TEST_F(SessionOneShot, GivesEveryLayer) {
  CONFORMS("R-LEVEL-11");
  Session session = create();
  const RunResult length = exec(session, kLayers), kept = once(session.id(), kLayers);
  EXPECT_EQ(kept.out.data, length.out.data);
  EXPECT_NE(kept.out.data.find("Seccomp:\t2"), std::string::npos) << kept.out.data;
  EXPECT_NE(kept.out.data.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(kept.out.data.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_EQ(kept.layers, length.layers);
  EXPECT_EQ(kept.warnings, length.warnings);
  EXPECT_EQ(kept.notices, length.notices);
}

TEST_F(SessionOneShot, CommandLineGetsStatusTimeoutAndCeiling) {
  CONFORMS("R-POLICY-4");
  Session session = create();
  EXPECT_EQ(cli({"exec", session.id(), "--", "sh", "-c", "echo out; exit 3"}).exit_status, 3);
  EXPECT_EQ(cli({"exec", session.id(), "--timeout", "1ms", "--", "sleep", "10"}).exit_status, 124);
  EXPECT_EQ(cli({"exec", session.id(), "--timeout", "10000h", "--", "true"}).exit_status, 0) << "typed by a person";
  const auto refused = session.exec({.command = {"true"}, .timeout_seconds = 36e6});
  EXPECT_FALSE(refused) << "a program is bound by the ceiling";
}

TEST_F(SessionOneShot, FollowsTheSessionOverCheckpointAndDestroy) {
  Session session = create();
  ASSERT_TRUE(session.write("kept", "1"));
  ASSERT_TRUE(session.checkpoint("c"));
  EXPECT_EQ(once(session.id(), "cat kept").out.data, "1");
  EXPECT_EQ(once(session.id(), "cat kept").out.data, "1");
  ASSERT_TRUE(session.destroy());
  EXPECT_FALSE(store->exec(session.id(), {.command = {"true"}}));
}

TEST_F(SessionOneShot, PassesVariablesOfEachCaller) {
  Session session = create();
  ::setenv("TZ", "Europe/Zurich", 1);
  EXPECT_EQ(once(session.id(), "echo $TZ").out.data, "Europe/Zurich\n");
  ::setenv("TZ", "Asia/Tokyo", 1);
  ::setenv("SECRET", "s", 1);
  EXPECT_EQ(once(session.id(), "echo $TZ$SECRET").out.data, "Asia/Tokyo\n");
  ::unsetenv("TZ");
  ::unsetenv("SECRET");
  EXPECT_EQ(once(session.id(), "echo $TZ").out.data, "\n");
}

TEST_F(SessionOneShot, EnforcesQuotaAndReportsBlockedCalls) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.max_total_size", "4M"));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(exitStatus(once(made->id(), "true")), 0);
  const RunResult full = once(made->id(), "head -c 3M /dev/zero > a; sleep 0.2; head -c 3M /dev/zero > b; sleep 20");
  EXPECT_EQ(full.limit, Limit::disk);
  const RunResult refused = once(made->id(), "unshare -U true");
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(refused.violations.front().syscall, "unshare");
}

TEST_F(SessionOneShot, ChecksCommandRulesEachTime) {
  CONFORMS("R-PROCESS-9");
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("commands.blocked_patterns", "forbidden"));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(exitStatus(once(made->id(), "true")), 0);
    const auto refused = store->exec(made->id(), {.command = {"echo", "forbidden"}});
    ASSERT_TRUE(refused) << refused.error().message();
    EXPECT_EQ(refused->outcome, OutcomeKind::denied);
    EXPECT_EQ(refused->out.data, "");
  }
}

TEST_F(SessionOneShot, NameRefersToTheCurrentSession) {
  SessionOptions wanted = options();
  wanted.name = "mine";
  auto first = store->create(wanted);
  ASSERT_TRUE(first) << first.error().message();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store->exec("mine", {.command = {"touch", "first"}}));
  ASSERT_TRUE(first->destroy());
  EXPECT_FALSE(store->exec("mine", {.command = {"true"}}));
  auto second = store->create(wanted);
  ASSERT_TRUE(second) << second.error().message();
  const auto result = store->exec("mine", {.command = {"ls", "first"}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_NE(exitStatus(*result), 0);
}

}  // namespace
}  // namespace caisson::test
