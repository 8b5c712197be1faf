// Child cgroups: members, usage, and killing them.
#include "sys/cgroup_testing.h"

namespace caisson::sys {
namespace {

using Kind = CgroupBase::Kind;
using fixtures::kMiB;
using fixtures::sleepLong;
using fixtures::startInside;
using fixtures::waitFor;

class CgroupChild : public fixtures::CgroupTest {
 protected:
  /// Creates a child of `whole`; no cgroup on failure. Tests start processes directly in it: moving them is slow on v2.
  Cgroup child(const Cgroup& whole, std::string_view name = "command-1") {
    auto made = whole.createChild(name);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : Cgroup();
  }
};

int useProcessor() {
  volatile std::uint64_t work = 0;
  for (std::uint64_t i = 0; i < 30'000'000; ++i) work = work + i;
  return 0;
}

TEST_F(CgroupChild, KillNowEndsItsProcessesAndNoOthers) {
  Cgroup whole = make({.memory = 64 * kMiB, .pids = 16});
  Cgroup first = child(whole, "command-1"), second = child(whole, "command-2");
  const pid_t victim = startInside(first, sleepLong), other = startInside(second, sleepLong);
  while (first.empty() || second.empty()) ::usleep(1000);
  first.killNow();
  EXPECT_EQ(waitFor(victim), SIGKILL);
  EXPECT_TRUE(first.empty());
  EXPECT_FALSE(second.empty());
  EXPECT_EQ(::waitpid(other, nullptr, WNOHANG), 0) << "the process of the other one is gone";
  second.killNow();
  EXPECT_EQ(waitFor(other), SIGKILL);
}

TEST_F(CgroupChild, CanBeUsedAgainAfterKillNow) {
  Cgroup whole = make({.memory = 64 * kMiB, .pids = 16});
  Cgroup one = child(whole);
  for (int round = 0; round < 3; ++round) {
    const pid_t pid = startInside(one, sleepLong);
    while (one.empty()) ::usleep(1000);
    one.killNow();
    EXPECT_EQ(waitFor(pid), SIGKILL);
    one.reset();
    EXPECT_TRUE(one.empty());
  }
}

TEST_F(CgroupChild, CountsCpuTimeOfItsProcessesOnly) {
  Cgroup whole = make({.memory = 64 * kMiB, .pids = 16, .account_cpu = true});
  Cgroup busy = child(whole, "command-1"), idle = child(whole, "command-2");
  if (!busy.usage().cpu_usec) GTEST_SKIP() << "nothing counts CPU time here";
  EXPECT_EQ(waitFor(startInside(busy, useProcessor)), 0);
  EXPECT_GT(busy.usage().cpu_usec.value_or(0), 1000U);
  EXPECT_LT(idle.usage().cpu_usec.value_or(0), 1000U);
}

TEST_F(CgroupChild, IsRemovedWithItsParent) {
  Cgroup whole = make({.memory = 64 * kMiB, .pids = 16});
  pid_t pid = -1;
  {
    auto one = whole.createChild("command-1");
    ASSERT_TRUE(one) << one.error().message();
    pid = startInside(*one, sleepLong);
    while (one->empty()) ::usleep(1000);
    (void)one->keep();  // like a supervisor that was killed
  }
  EXPECT_TRUE(whole.remove());
  EXPECT_EQ(waitFor(pid), SIGKILL);
}

TEST_F(CgroupChild, NamesAreChecked) {
  const Cgroup whole = make({.memory = 64 * kMiB});
  for (const char* name : {"", "..", "a/b", "a b"}) EXPECT_FALSE(whole.createChild(name)) << name;
}

}  // namespace
}  // namespace caisson::sys
