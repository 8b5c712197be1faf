// The pool: ready sessions that are handed out once, and automatic checkpoints.
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <set>
#include <thread>

#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionPoolTest : public SessionTest {
 protected:
  static bool fills(const SessionPool& pool, std::size_t size) {
    for (int i = 0; i < 400 && pool.ready() < size; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return pool.ready() == size;
  }
  using Time = std::pair<std::int64_t, std::int64_t>;  ///< seconds, nanoseconds
  static Time clockTime(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return {now.tv_sec, now.tv_nsec};
  }
  static Time changeTime(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return {status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
  }
  [[nodiscard]] std::size_t inStore() const {
    return std::stoul(runProgram({"sh", "-c", "ls " + home_path + "/sessions | wc -l"}).out);
  }
};

TEST_F(SessionPoolTest, HandsOutEachSessionOnceWithoutOldState) {
  CONFORMS("R-FILES-19", "R-SESSION-5");
  workspace.write("real", "real\n");
  auto pool = store->pool(options(), 3);
  ASSERT_TRUE(pool) << pool.error().message();
  ASSERT_TRUE(fills(*pool, 3));
  EXPECT_TRUE(store->list()->empty()) << "not handed out yet";
  std::set<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    auto session = pool->take(i == 0 ? "first" : "");
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_TRUE(ids.insert(session->id()).second) << "handed out twice";
    EXPECT_EQ(output(*session,
                     "cat real; ls -A /workspace /tmp /home/sandbox; set -- /proc/[0-9]*; echo $#; echo mark > "
                     "mark; echo t > /tmp/t; sleep 100 > /dev/null 2>&1 &"),
              "real\n/home/sandbox:\n\n/tmp:\n\n/workspace:\nreal\n1\n")
        << "only the shell: no earlier user";
    EXPECT_GT(session->info()->expires_in, 3000) << "its time begins when it is taken";
    if (i % 2 == 1) {
      EXPECT_TRUE(session->destroy());
    }
  }
  EXPECT_TRUE(store->find("first"));
  EXPECT_FALSE(pool->take("first")) << "a name means one session";
  EXPECT_FALSE(pool->take("no/name"));
  ASSERT_TRUE(fills(*pool, 3));
  EXPECT_EQ(store->list()->size(), 4U);
}

TEST_F(SessionPoolTest, IsBoundedAndLeavesNothing) {
  EXPECT_FALSE(store->pool(options(), 0));
  EXPECT_FALSE(store->pool(options(), 1000));
  {
    auto pool = store->pool(options(), 4);
    ASSERT_TRUE(pool) << pool.error().message();
    ASSERT_TRUE(fills(*pool, 4));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(inStore(), 4U);
  }
  EXPECT_EQ(inStore(), 0U);
}

TEST_F(SessionPoolTest, RunsTheWarmUpInEachSessionBeforeItIsReady) {
  auto pool = store->pool(options(), {.size = 2, .warm_up = {"sh", "-c", "echo warm > /tmp/w"}});
  ASSERT_TRUE(pool) << pool.error().message();
  for (int i = 0; i < 3; ++i) {
    auto session = pool->take();
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ(output(*session, "cat /tmp/w"), "warm\n");
  }
}

TEST_F(SessionPoolTest, RefusesAWarmUpThatFails) {
  const auto pool = store->pool(options(), {.size = 2, .warm_up = {"sh", "-c", "echo no module >&2; exit 3"}});
  ASSERT_FALSE(pool);
  EXPECT_NE(pool.error().message().find("no module"), std::string::npos) << pool.error().message();
  EXPECT_EQ(inStore(), 0U);
  EXPECT_TRUE(store->pool(options(), {.size = 1, .warm_up = {"no-such-program"}, .require_warm_up = false}));
}

TEST_F(SessionPoolTest, KeepsASessionWhoseHandOutWasRefused) {
  int made = 0;
  auto pool = store->pool(options(), {.size = 1, .new_name = [&] { return "ready-" + std::to_string(++made); }});
  ASSERT_TRUE(pool) << pool.error().message();
  std::string offered;
  const auto refused = pool->take({}, 3600, [&](const std::string& name) -> Result<void> {
    offered = name;
    return std::unexpected(Error{.reason = "over quota"});
  });
  EXPECT_FALSE(refused);
  EXPECT_EQ(offered, "ready-1");
  EXPECT_TRUE(store->list()->empty());
  auto session = pool->take();
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ(session->info()->name, "ready-1") << "the same one";
  EXPECT_TRUE(store->find("ready-1"));
}

TEST_F(SessionPoolTest, DetectsConflictsFromTheTimeOfTaking) {
  workspace.write("a", "1\n");
  auto pool = store->pool(options(), 1);
  ASSERT_TRUE(pool) << pool.error().message();
  // Changed after the pool made its session and before the session is handed out, by the kernel's time stamps.
  const auto made = clockTime(CLOCK_REALTIME);
  ASSERT_TRUE(eventually([&] {
    workspace.write("a", "2\n");
    return changeTime(workspace / "a") > made;
  }));
  ASSERT_TRUE(eventually([&] { return clockTime(CLOCK_REALTIME_COARSE) > changeTime(workspace / "a"); }));
  auto session = pool->take();
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ(output(*session, "cat a; echo 3 > a"), "2\n");
  const auto report = session->commit();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->complete());
  EXPECT_EQ(readFile(workspace / "a"), "3\n");
}

TEST_F(SessionPoolTest, AutomaticCheckpointsComeBeforeEachCommandThatFollowsAChange) {
  SessionOptions wanted = options();
  wanted.auto_checkpoint = true;
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "echo 1 > f");
  output(*session, "echo 2 > f");
  output(*session, "cat f");
  output(*session, "cat f");
  auto points = session->checkpoints();
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 2U) << "nothing changed since the second";
  ASSERT_TRUE(session->restore("auto-1"));
  EXPECT_EQ(output(*session, "cat f"), "1\n");
  const auto sleeper = session->start({.command = {"sh", "-c", "echo 3 > f; sleep 100"}});
  ASSERT_TRUE(sleeper);
  ASSERT_TRUE(eventually([&] {
    const auto piece = session->read("f");
    return piece && piece->data == "3\n";
  }));
  const RunResult busy = exec(*session, "cat f");
  ASSERT_FALSE(busy.notices.empty());
  EXPECT_NE(busy.notices.back().find("automatic checkpoint"), std::string::npos);
  EXPECT_EQ(session->checkpoints()->size(), 2U);
}

}  // namespace
}  // namespace caisson::test
