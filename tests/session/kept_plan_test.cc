// Commands by a plan that is kept with the session: nothing may be missing that a plan made at length would have, and
// whatever changes in between must show.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "functional/session.h"
#include "sys/build_id.h"

namespace caisson::test {
namespace {

class SessionKeptPlan : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (!IsSkipped()) requireOrSkip(!sys::buildId().empty(), "no plan is kept: linked without a build id");
  }
  RunResult again(const Session& session, const std::string& script) {
    auto result = store->exec(session.id(), {.command = {"sh", "-c", script}});
    EXPECT_TRUE(result) << result.error().message();
    return result ? *std::move(result) : RunResult{};
  }
  [[nodiscard]] std::string file(const Session& session, const std::string& name) const {
    return home_path + "/sessions/" + session.id() + "/" + name;
  }
  [[nodiscard]] bool isKept(const Session& session) const { return ::access(file(session, "plan").c_str(), F_OK) == 0; }
  Session withKeptPlan() {
    Session session = create();
    EXPECT_EQ(exitStatus(again(session, "true")), 0);
    EXPECT_TRUE(isKept(session));
    return session;
  }
};

constexpr const char* kLayers =
    "grep -E '^(Seccomp|NoNewPrivs|Cap|Uid|Gid|Groups)' /proc/self/status; ulimit -a; env | sort; pwd; id; nproc; "
    "ls -l /proc/self/fd | wc -l; cat /proc/self/attr/current 2>&1; ls / /proc/1/fd 2>&1";

TEST_F(SessionKeptPlan, GivesACommandEveryLayer) {
  Session session = withKeptPlan();
  const RunResult length = exec(session, kLayers), kept = again(session, kLayers);
  EXPECT_EQ(kept.out.data, length.out.data);
  EXPECT_NE(kept.out.data.find("Seccomp:\t2"), std::string::npos) << kept.out.data;
  EXPECT_NE(kept.out.data.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(kept.out.data.find("CapEff:\t0000000000000000"), std::string::npos);
  EXPECT_EQ(kept.layers, length.layers);
  EXPECT_EQ(kept.warnings, length.warnings);
  EXPECT_EQ(kept.notices, length.notices);
}

TEST_F(SessionKeptPlan, IsWhatTheCommandLineGoesBy) {
  Session session = create();
  ASSERT_EQ(cli({"exec", session.id(), "--", "true"}).exit_status, 0);
  ASSERT_TRUE(isKept(session));
  struct stat before{}, after{};
  ASSERT_EQ(::stat(file(session, "plan").c_str(), &before), 0);
  EXPECT_EQ(cli({"exec", session.id(), "--", "sh", "-c", "echo out; exit 3"}).exit_status, 3);
  EXPECT_EQ(cli({"exec", session.id(), "--timeout", "1ms", "--", "sleep", "10"}).exit_status, 124);
  EXPECT_EQ(cli({"exec", session.id(), "--timeout", "10000h", "--", "true"}).exit_status, 125) << "above the ceiling";
  ASSERT_EQ(::stat(file(session, "plan").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "it was used, not made again";
  EXPECT_EQ(after.st_mode & 07777, 0600U);
}

TEST_F(SessionKeptPlan, EndsWithThePolicyItWasMadeOf) {
  Session session = withKeptPlan();
  EXPECT_EQ(again(session, "ulimit -n").out.data, "1024\n");
  std::ifstream in(file(session, "meta.json"));
  std::string meta((std::istreambuf_iterator<char>(in)), {});
  constexpr std::string_view kBefore = "\"open_files\": 1024", kAfter = "\"open_files\":  512";
  const auto at = meta.find(kBefore);
  ASSERT_NE(at, std::string::npos) << meta;
  meta.replace(at, kBefore.size(), kAfter);  // as long as before, in the same file: only what it says has changed
  std::ofstream(file(session, "meta.json"), std::ios::in) << meta;
  EXPECT_EQ(again(session, "ulimit -n").out.data, "512\n");
  EXPECT_EQ(again(session, "ulimit -n").out.data, "512\n");
}

TEST_F(SessionKeptPlan, EndsWithTheSandboxItWasMadeFor) {
  Session session = withKeptPlan();
  struct stat before{}, after{};
  ASSERT_EQ(::stat(file(session, "plan").c_str(), &before), 0);
  ASSERT_TRUE(session.write("kept", "1"));
  ASSERT_TRUE(session.checkpoint("c"));
  EXPECT_EQ(again(session, "cat kept").out.data, "1");
  EXPECT_EQ(again(session, "cat kept").out.data, "1");
  ASSERT_EQ(::stat(file(session, "plan").c_str(), &after), 0);
  EXPECT_NE(before.st_ino, after.st_ino);
  ASSERT_TRUE(session.destroy());
  EXPECT_FALSE(store->exec(session.id(), {.command = {"true"}}));
}

TEST_F(SessionKeptPlan, DamagedIsNotThere) {
  Session session = withKeptPlan();
  ASSERT_EQ(::truncate(file(session, "plan").c_str(), 4000), 0);
  EXPECT_EQ(again(session, "echo 1").out.data, "1\n");
  ASSERT_EQ(::unlink(file(session, "plan").c_str()), 0);
  ASSERT_EQ(::mkfifo(file(session, "plan").c_str(), 0600), 0) << "nothing may wait for it either";
  EXPECT_EQ(again(session, "echo 2").out.data, "2\n");
  EXPECT_EQ(again(session, "echo 3").out.data, "3\n");
}

TEST_F(SessionKeptPlan, TakesTheVariablesOfEachCaller) {
  Session session = withKeptPlan();
  ::setenv("TZ", "Europe/Zurich", 1);
  EXPECT_EQ(again(session, "echo $TZ").out.data, "Europe/Zurich\n");
  ::setenv("TZ", "Asia/Tokyo", 1);
  ::setenv("SECRET", "s", 1);
  EXPECT_EQ(again(session, "echo $TZ$SECRET").out.data, "Asia/Tokyo\n");
  ::unsetenv("TZ");
  ::unsetenv("SECRET");
  EXPECT_EQ(again(session, "echo $TZ").out.data, "\n");
}

TEST_F(SessionKeptPlan, LongCommandsAreWatchedAndRefusedCallsSeen) {
  SessionOptions wish = options();
  ASSERT_TRUE(wish.policy.set("filesystem.max_total_size", "4M"));
  auto made = store->create(wish);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(exitStatus(again(*made, "true")), 0);
  const RunResult full = again(*made, "head -c 3M /dev/zero > a; sleep 0.2; head -c 3M /dev/zero > b; sleep 20");
  EXPECT_EQ(full.limit, Limit::disk);
  const RunResult refused = again(*made, "unshare -U true");
  ASSERT_EQ(refused.violations.size(), 1U);
  EXPECT_EQ(refused.violations.front().syscall, "unshare");
}

TEST_F(SessionKeptPlan, RulesAboutCommandsHoldEachTime) {
  SessionOptions wish = options();
  ASSERT_TRUE(wish.policy.set("commands.blocked_patterns", "forbidden"));
  auto made = store->create(wish);
  ASSERT_TRUE(made) << made.error().message();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(exitStatus(again(*made, "true")), 0);
    EXPECT_FALSE(store->exec(made->id(), {.command = {"echo", "forbidden"}}));
  }
}

TEST_F(SessionKeptPlan, ANameMeansTheSessionThatHasItNow) {
  SessionOptions wish = options();
  wish.name = "mine";
  auto first = store->create(wish);
  ASSERT_TRUE(first) << first.error().message();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store->exec("mine", {.command = {"touch", "first"}}));
  ASSERT_TRUE(first->destroy());
  EXPECT_FALSE(store->exec("mine", {.command = {"true"}}));
  auto second = store->create(wish);
  ASSERT_TRUE(second) << second.error().message();
  const auto result = store->exec("mine", {.command = {"ls", "first"}});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_NE(exitStatus(*result), 0);
}

}  // namespace
}  // namespace caisson::test
