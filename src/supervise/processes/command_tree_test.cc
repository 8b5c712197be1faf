#include "supervise/processes/command_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "supervise/processes/proc_text.h"

namespace caisson::supervise {
namespace {

/// A child that plays pid 1, and below it a command of `count` sleeping processes.
class CommandTreeTest : public testing::Test {
 protected:
  void start(int count, void (*work)() = nullptr) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    init = ::fork();
    ASSERT_GE(init, 0);
    if (init == 0) {
      const pid_t root_process = ::fork();
      if (root_process == 0) {
        // Once the test has the pid, killing the process group reaches all of them.
        const pid_t self = ::setsid();
        (void)!::write(ends[1], &self, sizeof(self));
        for (int i = 1; i < count; ++i) {
          if (::fork() == 0) break;
        }
        if (work != nullptr) work();
        for (;;) ::pause();
      }
      for (;;) ::pause();
    }
    ASSERT_EQ(::read(ends[0], &root, sizeof(root)), static_cast<ssize_t>(sizeof(root)));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void TearDown() override {
    if (root > 0) ::kill(-root, SIGKILL);
    if (init <= 0) return;
    ::kill(init, SIGKILL);
    ::waitpid(init, nullptr, 0);
  }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 500; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  static bool isZombie(pid_t pid) { return supervise::readFile(pid, "status").find("State:\tZ") != std::string::npos; }
  pid_t init = -1, root = -1;
};

TEST_F(CommandTreeTest, FindsEveryProcessOfTheCommandButNotPid1) {
  start(4);
  const CommandTree tree(init, root);
  EXPECT_TRUE(eventually([&] { return tree.members().size() == 4; })) << tree.members().size();
  for (const auto& member : tree.members()) EXPECT_NE(member.pid, init);
}

TEST_F(CommandTreeTest, FindsUndumpableProcesses) {
  start(2, [] { ::prctl(PR_SET_DUMPABLE, 0); });
  const CommandTree tree(init, root);
  EXPECT_TRUE(eventually([&] { return tree.members().size() == 2; }));
}

TEST_F(CommandTreeTest, KillEndsStoppedProcessesToo) {
  start(3);
  const CommandTree tree(init, root);
  ASSERT_TRUE(eventually([&] { return tree.members().size() == 3; }));
  tree.signal(SIGSTOP);
  tree.kill(false);
  // Their zombies stay: this pid 1 does not reap.
  EXPECT_TRUE(eventually([&] {
    const auto members = tree.members();
    return std::all_of(members.begin(), members.end(), [](const auto& member) { return isZombie(member.pid); });
  }));
}

TEST_F(CommandTreeTest, UnknownRootHasNoMembers) {
  start(2);
  EXPECT_TRUE(CommandTree(init, 1 << 30).members().empty());
}

TEST_F(CommandTreeTest, CpuTimeGrowsAndNeverFalls) {
  start(2, [] {
    for (;;) asm volatile("" ::: "memory");
  });
  CommandTree tree(init, root);
  EXPECT_TRUE(eventually([&] { return tree.cpuMicroseconds() > 50'000; }));
  const std::uint64_t before = tree.cpuMicroseconds();
  tree.kill(false);
  EXPECT_GE(tree.cpuMicroseconds(), before);
}

}  // namespace
}  // namespace caisson::supervise
