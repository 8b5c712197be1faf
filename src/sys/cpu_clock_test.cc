#include "sys/cpu_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace caisson::sys {
namespace {

using std::chrono::milliseconds;

void burn(milliseconds time) {
  timespec now{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) < time);
}

/// Runs `body` in a child once the clock is open; returns the clock after the child has exited.
template <class Body>
milliseconds counted(Body body) {
  int start[2];
  EXPECT_EQ(::pipe2(start, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(start[1]);
    (void)!::read(start[0], &byte, 1);
    body();
    ::_exit(0);
  }
  const auto clock = CpuClock::open(child);
  ::close(start[0]);
  ::close(start[1]);
  ::waitpid(child, nullptr, 0);
  if (!clock) return milliseconds(-1);
  return std::chrono::duration_cast<milliseconds>(clock->used());
}

class CpuClockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto own = CpuClock::open(::getpid()); !own) GTEST_SKIP() << own.error().message();
  }
};

TEST_F(CpuClockTest, CountsProcess) {
  const milliseconds used = counted([] { burn(milliseconds(100)); });
  EXPECT_GE(used, milliseconds(95));
  EXPECT_LT(used, milliseconds(150));
}

TEST_F(CpuClockTest, CountsUnreapedChildren) {
  const auto by_children = [](milliseconds each) {
    return counted([each] {
      ::signal(SIGCHLD, SIG_IGN);
      ::prctl(PR_SET_DUMPABLE, 0);
      for (int i = 0; i < 10; ++i) {
        if (::fork() == 0) {
          burn(each);
          ::_exit(0);
        }
      }
      while (::wait(nullptr) > 0 || errno == EINTR) {
      }
    });
  };
  const milliseconds of_forks = by_children(milliseconds(0));
  const milliseconds used = by_children(milliseconds(20));
  EXPECT_GE(used, milliseconds(195));
  EXPECT_LT(used, 2 * of_forks + milliseconds(300));
}

TEST_F(CpuClockTest, CountsKilledChild) {
  const milliseconds used = counted([] {
    const pid_t child = ::fork();
    if (child == 0) {
      burn(milliseconds(100));
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  });
  EXPECT_GE(used, milliseconds(95));
}

TEST_F(CpuClockTest, CountedProcessCannotStopIt) {
  const milliseconds used = counted([] {
    ::prctl(PR_TASK_PERF_EVENTS_DISABLE);
    burn(milliseconds(100));
  });
  EXPECT_GE(used, milliseconds(95));
}

TEST_F(CpuClockTest, RefusedForUnknownProcess) {
  const auto clock = CpuClock::open(0x3fffffff);
  ASSERT_FALSE(clock);
  EXPECT_EQ(clock.error().sys_errno, ESRCH);
}

}  // namespace
}  // namespace caisson::sys
