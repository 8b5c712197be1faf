// Runs on what this host offers: v1 or v2, as root or in a delegated subtree. Without cgroups, tests only the error.
#include "sys/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "support/conforms.h"
#include "sys/cgroup_testing.h"

namespace caisson::sys {
namespace {

using Kind = CgroupBase::Kind;
using namespace std::chrono_literals;
using namespace fixtures;  // NOLINT: helpers of these tests

std::string readBack(const CgroupBase& base, const Cgroup& cgroup, bool CgroupControllers::* controller,
                     const char* file) {
  for (const auto& directory : base.directories) {
    if (!(directory.offers.*controller)) continue;
    std::string text =
        readAt(AT_FDCWD, (directory.path + "/" + cgroup.directoryName() + "/" + file).c_str()).value_or("unreadable");
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  return "no such controller";
}

TEST(CgroupBase, NamesTheMissingPartAndARemedy) {
  const CgroupBase base = CgroupBase::find();
  std::printf("kind %s, usable %s, base %s, enable %s, leaf %d: %s\n", std::string(name(base.kind)).c_str(),
              namesOf(base.usable).c_str(), base.directory.c_str(), namesOf(base.to_enable).c_str(), base.needs_leaf,
              base.why_not.c_str());
  if (base.kind == Kind::none) {
    EXPECT_FALSE(base.why_not.empty());
    EXPECT_TRUE(base.directories.empty());
    EXPECT_FALSE(any(base.usable));
    const auto made = Cgroup::create(base, "id", {.memory = kMiB});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().reason, base.why_not);
  } else {
    EXPECT_TRUE(any(base.usable));
    EXPECT_EQ(base.why_not.empty(), (base.usable == CgroupControllers{true, true, true, true, true}));
  }
}

TEST(CgroupBase, NamesTheRemedyForAUserWithoutDelegation) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become a user without a cgroup";
  if (CgroupBase::find().kind == Kind::none) GTEST_SKIP() << "no cgroups here";
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresuid(65'533, 65'533, 65'533) != 0) ::_exit(1);
    const CgroupBase base = CgroupBase::find();
    std::fprintf(stderr, "%s\n", base.why_not.c_str());
    const bool helpful = base.why_not.contains("systemd-run") || base.why_not.contains("run as root");
    ::_exit(base.kind == Kind::none && helpful ? 0 : 2);
  }
  EXPECT_EQ(waitFor(pid), 0);
}

TEST_F(CgroupTest, RejectsInvalidNamesAndShares) {
  for (const char* id : {"", "a/b", "supervisor", "a b", "\n"}) {
    EXPECT_FALSE(Cgroup::create(base_, id, {.memory = kMiB})) << id;
  }
  EXPECT_FALSE(Cgroup::create(base_, newId(), {.memory = 64 * kMiB, .cpus = -1}));
}

TEST_F(CgroupTest, LimitsAreReadBack) {
  CONFORMS("R-LIMIT-13");
  const CgroupLimits limits{.memory = 64 * kMiB, .pids = 17, .cpus = 0.5, .cpuset = {0}, .account_cpu = true};
  Cgroup cgroup = make(limits);
  ASSERT_TRUE(cgroup.valid());
  const bool v2 = base_.kind == Kind::v2;
  EXPECT_EQ(cgroup.descriptor() >= 0, v2);
  EXPECT_EQ(cgroup.enforced().memory, base_.usable.memory);
  EXPECT_EQ(cgroup.enforced().pids, base_.usable.pids);
  EXPECT_EQ(cgroup.enforced().cpus, base_.usable.cpu);
  EXPECT_EQ(cgroup.enforced().cpuset, base_.usable.cpuset);
  EXPECT_FALSE(cgroup.enforced().io);
  EXPECT_EQ(cgroup.enforced().oom_group, v2 && base_.usable.memory);
  using C = CgroupControllers;
  if (base_.usable.memory) {
    EXPECT_EQ(readBack(base_, cgroup, &C::memory, v2 ? "memory.max" : "memory.limit_in_bytes"), "67108864");
    if (cgroup.enforced().swap) {
      EXPECT_EQ(readBack(base_, cgroup, &C::memory, v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes"),
                v2 ? "0" : "67108864");
    }
  }
  if (base_.usable.pids) {
    EXPECT_EQ(readBack(base_, cgroup, &C::pids, "pids.max"), "17");
  }
  if (base_.usable.cpu) {
    EXPECT_EQ(readBack(base_, cgroup, &C::cpu, v2 ? "cpu.max" : "cpu.cfs_quota_us"), v2 ? "50000 100000" : "50000");
  }
  if (base_.usable.cpuset) {
    EXPECT_EQ(readBack(base_, cgroup, &C::cpuset, "cpuset.cpus"), "0");
  }
  ASSERT_TRUE(cgroup.remove());
  EXPECT_FALSE(cgroup.valid());
  EXPECT_TRUE(directoriesOf(base_, ::getpid()).empty());
}

TEST_F(CgroupTest, ReservationIsEnforcedOnV2Only) {
  CONFORMS("R-LIMIT-13");
  if (!base_.usable.memory) GTEST_SKIP() << base_.why_not;
  Cgroup cgroup = make({.memory = 64 * kMiB, .memory_low = 8 * kMiB});
  EXPECT_EQ(cgroup.enforced().memory_low, base_.kind == Kind::v2);
  if (base_.kind != Kind::v2) return;
  EXPECT_EQ(readBack(base_, cgroup, &CgroupControllers::memory, "memory.low"), std::to_string(8 * kMiB));
}

TEST_F(CgroupTest, CpusThatTheHostLacksAreAnErrorAndLeaveNothing) {
  if (!base_.usable.cpuset) GTEST_SKIP() << base_.why_not;
  const auto made = Cgroup::create(base_, newId(), {.memory = 64 * kMiB, .cpuset = {0, 4000}});
  ASSERT_FALSE(made);
  EXPECT_FALSE(made.error().hint.empty());
}

TEST_F(CgroupTest, NothingIsLeftWhenALimitIsRefused) {
  if (!base_.usable.memory || !base_.usable.pids) GTEST_SKIP() << base_.why_not;
  // More than pids.max accepts; on v1 the memory directory exists by then.
  const auto made = Cgroup::create(base_, newId(), {.memory = 64 * kMiB, .pids = ~0ULL});
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().object.ends_with("/pids.max")) << made.error().message();
}

/// Touches 64 MiB of a 16 MiB limit.
int eatMemory() {
  const long start = raw(SYS_mmap, 0, 64 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start < 0) return 98;
  for (std::uint64_t at = 0; at < 64 * kMiB; at += 4096) reinterpret_cast<volatile char*>(start)[at] = 1;
  return 0;
}

void expectOutOfMemory(Cgroup cgroup, Way way) {
  const Fd events = cgroup.oomEvents();
  EXPECT_TRUE(events);
  EXPECT_EQ(cgroup.usage().oom_kills, 0U);
  const int status = waitFor(startInside(cgroup, eatMemory, way));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  pollfd wait{.fd = events.get(), .events = POLLPRI | POLLIN, .revents = 0};
  if (cgroup.kind() == Kind::v2) wait.events = POLLPRI;
  EXPECT_EQ(::poll(&wait, 1, 2000), 1);
  const CgroupUsage usage = cgroup.usage();
  EXPECT_GE(usage.oom_kills.value_or(0), 1U);
  EXPECT_EQ(cgroup.totals(false).oom_kills, usage.oom_kills) << "the peak tells that it may have happened";
  if (cgroup.kind() == Kind::v2) {
    EXPECT_GT(usage.memory_limit_hits.value_or(0), 0U);
  }
  if (usage.memory_peak) {  // memory.peak exists since 5.19
    EXPECT_GT(*usage.memory_peak, 12 * kMiB);
    EXPECT_LE(*usage.memory_peak, 16 * kMiB);
  }
}

TEST_F(CgroupTest, OutOfMemoryKillsTheChildAndIsInTheUsage) {
  if (!base_.usable.memory) GTEST_SKIP() << base_.why_not;
  expectOutOfMemory(make({.memory = 16 * kMiB}), Way::preferred);
}

TEST_F(CgroupTest, EnteringByDescriptorWorksAsWell) {
  if (!base_.usable.memory) GTEST_SKIP() << base_.why_not;
  expectOutOfMemory(make({.memory = 16 * kMiB, .pids = 10, .cpus = 1}), Way::fallback);
}

TEST_F(CgroupTest, TotalsReadEventCountersOnlyOnRequest) {
  if (!base_.usable.memory || !base_.usable.pids) GTEST_SKIP() << base_.why_not;
  Cgroup cgroup = make({.memory = 512 * kMiB, .pids = 64});
  EXPECT_EQ(waitFor(startInside(cgroup, [] { return 0; })), 0);
  const CgroupUsage quiet = cgroup.totals(false);
  if (!quiet.memory_peak || !quiet.pids_peak) GTEST_SKIP() << "this kernel tells no peaks";
  EXPECT_FALSE(quiet.oom_kills || quiet.pids_limit_hits || quiet.memory_current);
  EXPECT_EQ(cgroup.totals(true).oom_kills, 0U) << "a host that is short of memory does not count as this limit";
}

TEST_F(CgroupTest, AddMovesAnotherProcess) {
  Cgroup cgroup = make({.memory = 64 * kMiB, .pids = 10});
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(sleepLong());
  const auto added = cgroup.add(pid);
  EXPECT_TRUE(added) << added.error().message();
  if (base_.usable.pids) {
#if defined(__SANITIZE_THREAD__)  // which adds a thread to every process
    EXPECT_EQ(cgroup.usage().pids_current, 2U);
#else
    EXPECT_EQ(cgroup.usage().pids_current, 1U);
#endif
  }
  EXPECT_TRUE(cgroup.kill());
  EXPECT_EQ(WTERMSIG(waitFor(pid)), SIGKILL);
  EXPECT_FALSE(cgroup.add(pid));
  EXPECT_FALSE(cgroup.add(0));
}

long forkRaw() {
  CloneArgs arguments{};
  arguments.exit_signal = SIGCHLD;
  return raw(SYS_clone3, &arguments, sizeof(arguments));
}

TEST_F(CgroupTest, ForksBeyondTheLimitAreRefusedAndCounted) {
  if (!base_.usable.pids) GTEST_SKIP() << base_.why_not;
  Cgroup cgroup = make({.pids = 4});
  const pid_t pid = startInside(cgroup, [] {
    int made = 0;
    for (int i = 0; i < 10; ++i) {
      const long child = forkRaw();
      if (child == 0) raw(SYS_exit_group, sleepLong());
      if (child > 0) ++made;
    }
    return made;
  });
  EXPECT_EQ(WEXITSTATUS(waitFor(pid)), 3);
  EXPECT_GE(cgroup.usage().pids_limit_hits.value_or(0), 1U);
  EXPECT_GE(cgroup.totals(false).pids_limit_hits.value_or(0), 1U);
  EXPECT_EQ(cgroup.usage().pids_peak.value_or(4), 4U);  // pids.peak exists since 6.1
  // The destructor kills the three.
}

TEST_F(CgroupTest, CpuShareIsEnforced) {
  CONFORMS("R-LIMIT-2");
  if (!base_.usable.cpu) GTEST_SKIP() << base_.why_not;
  Cgroup cgroup = make({.cpus = 0.1, .account_cpu = true});
  const auto start = std::chrono::steady_clock::now();
  const pid_t pid = startInside(cgroup, [] {
    timespec used{};
    do {
      raw(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_nsec < 60'000'000 && used.tv_sec == 0);
    return 0;
  });
  EXPECT_EQ(waitFor(pid), 0);
  // 60 ms of work at 10 ms per 100 ms: at least five full periods, even if the first slice is granted at once.
  EXPECT_GE(std::chrono::steady_clock::now() - start, 350ms);
  const CgroupUsage usage = cgroup.usage();
  EXPECT_GT(usage.cpu_throttled_periods.value_or(0), 0U);
  EXPECT_GT(usage.cpu_throttled_usec.value_or(0), 0U);
  EXPECT_GT(usage.cpu_usec.value_or(0), 30'000U);
}

TEST_F(CgroupTest, KillEndsTheTree) {
  Cgroup cgroup = make({.memory = 64 * kMiB, .pids = 40});
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t pid = startInside(cgroup, [] {
    for (int depth = 0; depth < 3; ++depth) forkRaw();  // eight processes, three generations
    return sleepLong();
  });
  ::close(ends[1]);
  for (int i = 0; i < 2000 && base_.usable.pids && cgroup.usage().pids_current != 8U; ++i)
    std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(cgroup.kill());
  EXPECT_EQ(WTERMSIG(waitFor(pid)), SIGKILL);
  // End of file: every copy of the write end is closed, so every process is gone.
  pollfd wait{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 5000), 1);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::close(ends[0]);
  EXPECT_TRUE(cgroup.remove());
}

TEST_F(CgroupTest, KillEndsAForkBomb) {
  if (!base_.usable.pids) GTEST_SKIP() << base_.why_not;
  Cgroup cgroup = make({.memory = 64 * kMiB, .pids = 20});
  const pid_t pid = startInside(cgroup, [] {
    while (true) {
      if (forkRaw() == 0) continue;
      const timespec time{.tv_sec = 0, .tv_nsec = 1'000'000};
      raw(SYS_nanosleep, &time, nullptr);
    }
    return 0;
  });
  for (int i = 0; i < 2000 && cgroup.usage().pids_limit_hits.value_or(1) == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(cgroup.kill());
  EXPECT_EQ(WTERMSIG(waitFor(pid)), SIGKILL);
  const auto removed = cgroup.remove();
  EXPECT_TRUE(removed) << removed.error().message();
}

TEST_F(CgroupTest, DestructorKillsProcessesAndRemovesTheCgroup) {
  pid_t pid = -1;
  {
    Cgroup cgroup = make({.memory = 64 * kMiB, .pids = 10, .cpus = 1, .cpuset = {0}, .account_cpu = true});
    pid = startInside(cgroup, sleepLong);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_TRUE(directoriesOf(base_, ::getpid()).empty());
  EXPECT_EQ(WTERMSIG(waitFor(pid)), SIGKILL);
}

TEST_F(CgroupTest, NameCannotBeUsedTwice) {
  const std::string id = newId();
  auto first = Cgroup::create(base_, id, {.memory = 64 * kMiB});
  ASSERT_TRUE(first);
  const auto second = Cgroup::create(base_, id, {.memory = 64 * kMiB});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().sys_errno, EEXIST);
  EXPECT_FALSE(directoriesOf(base_, ::getpid()).empty());
}

TEST_F(CgroupTest, AForkedMakerUsesItsOwnName) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto made = Cgroup::create(base_, newId(), {.memory = 64 * kMiB});
    const bool right = made && parseCgroupName(made->directoryName())->pid == ::getpid();
    made = Cgroup();
    ::_exit(right ? 0 : 1);
  }
  EXPECT_EQ(waitFor(pid), 0);
}

TEST(CgroupNone, DoesNothing) {
  Cgroup none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.descriptor(), -1);
  EXPECT_TRUE(none.kill());
  EXPECT_TRUE(none.remove());
  EXPECT_FALSE(none.usage().memory_peak);
  EXPECT_FALSE(none.oomEvents());
}

TEST(CgroupDisk, ExistsOnlyForFileSystemsOnADisk) {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(diskOf(proc.get()));
  const Fd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_NE(diskOf(root.get()).value_or(1), 0U);
}

TEST_F(CgroupTest, DiskLimitsAreReadBack) {
  CONFORMS("R-LIMIT-5");
  const Fd here(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto disk = diskOf(here.get());
  if (!disk || !base_.usable.io) GTEST_SKIP() << "no disk or no io controller: " << base_.why_not;
  Cgroup cgroup = make({.io_disks = {*disk}, .io_rbps = 10 * kMiB, .io_wiops = 500});
  EXPECT_TRUE(cgroup.enforced().io);
  const char* file = base_.kind == Kind::v2 ? "io.max" : "blkio.throttle.read_bps_device";
  EXPECT_TRUE(readBack(base_, cgroup, &CgroupControllers::io, file).contains("10485760"));
}

}  // namespace
}  // namespace caisson::sys
