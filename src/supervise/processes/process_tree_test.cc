#include "supervise/processes/process_tree.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "sys/clone.h"

namespace caisson::supervise {
namespace {

TEST(ProcessTimes, AreParsedAfterAnyProcessName) {
  const std::string stat = "7 (a) b ) (x) S 1 7 7 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 5 0 100";
  const auto times = parseProcessTimes(stat);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ticks, 100U);
  EXPECT_EQ(times->threads, 5U);
}

TEST(ProcessTimes, MalformedTextIsRejected) {
  for (const char* text : {"", "7", "7 (a)", "7 (a) S 1 2 3", "7 (a) S 1 7 7 0 -1 4194304 1 2 3 4 x 20 30 40 20 0 5"})
    EXPECT_FALSE(parseProcessTimes(text)) << text;
}

TEST(Kilobytes, AreFoundByTheirWholeKey) {
  const std::string text = "RssAnonX:\t 9 kB\nRssAnon:\t      12 kB\nVmPTE:\t 1 kB\n";
  EXPECT_EQ(parseKilobytes(text, "RssAnon"), 12U * 1024);
  EXPECT_EQ(parseKilobytes(text, "VmPTE"), 1024U);
  EXPECT_EQ(parseKilobytes(text, "VmSwap"), 0U);
  EXPECT_EQ(parseKilobytes("RssAnon:", "RssAnon"), 0U);
}

constexpr std::size_t kSiblings = 4200, kSmallStack = 16384;

// The processes share all memory with their parent, its thread state included. So a sanitizer must not follow them:
// they call the kernel without its interceptors, and their functions are not instrumented.
#if defined(__SANITIZE_THREAD__)
#define NOT_INSTRUMENTED __attribute__((no_sanitize_thread))
#else
#define NOT_INSTRUMENTED
#endif

int test_program = -1;  ///< a pipe that ends with the test program

NOT_INSTRUMENTED int waitForTheTest(void*) {
  char byte;
  return static_cast<int>(::syscall(SYS_read, test_program, &byte, sizeof byte));
}

/// A process that shares memory with its parent, so that thousands cost little.
NOT_INSTRUMENTED pid_t startSmall(int (*run)(void*), void* stack, void* argument = nullptr) {
  return ::__clone(run, static_cast<char*>(stack) + kSmallStack, CLONE_VM | SIGCHLD, argument);
}

void* newStack() { return ::mmap(nullptr, kSmallStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

pid_t behind_all = 0;  ///< -1 if it could not be started

NOT_INSTRUMENTED int startOneMore(void* stack) {
  behind_all = startSmall(waitForTheTest, stack);
  return waitForTheTest(nullptr);
}

TEST(ProcessTreeMembers, AreFoundAmongThousandsOfProcesses) {
  int report[2];
  int alive[2];
  ASSERT_EQ(::pipe(report), 0);
  ASSERT_EQ(::pipe(alive), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::setpgid(0, 0);
    ::close(alive[1]);
    test_program = alive[0];
    std::size_t started = 0;
    while (started < kSiblings && startSmall(waitForTheTest, newStack()) > 0) ++started;
    if (startSmall(startOneMore, newStack(), newStack()) < 0) behind_all = -1;
    while (__atomic_load_n(&behind_all, __ATOMIC_ACQUIRE) == 0) ::usleep(1000);
    const pid_t last = started == kSiblings ? behind_all : -1;
    (void)!::write(report[1], &last, sizeof last);
    ::_exit(waitForTheTest(nullptr));
  }
  pid_t last = -1;
  ASSERT_EQ(::read(report[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
  const std::vector<pid_t> found = ProcessTree(parent).members();
  ::kill(-parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (const int end : {report[0], report[1], alive[0], alive[1]}) ::close(end);
  ASSERT_GT(last, 0) << "not enough processes could be started";
  EXPECT_EQ(found.size(), kSiblings + 3);
  EXPECT_TRUE(std::ranges::find(found, last) != found.end());
}

/// A child and a grandchild that hold memory and use some CPU time.
class ProcessTreeTest : public testing::Test {
 protected:
  static constexpr std::size_t kHeld = 24 << 20;
#if defined(__SANITIZE_THREAD__)
  static constexpr unsigned kOfTheSanitizer = 1;  // threads in every process
#else
  static constexpr unsigned kOfTheSanitizer = 0;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t kInherited = std::size_t{4} << 30;  // memory of the sanitizer
#else
  static constexpr std::size_t kInherited = 16 << 20;  // from the test program, by fork
#endif

  void SetUp() override {
    ::malloc_trim(0);  // memory freed by earlier tests would be inherited too
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      const pid_t grandchild = ::fork();
      if (grandchild == 0) {
        void* memory = ::mmap(nullptr, kHeld, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, 1, kHeld);
        timespec time{};
        do {
          ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        } while (time.tv_nsec < 150'000'000);
        (void)!::write(ready[1], "x", 1);
      }
      ::pause();
      ::_exit(0);
    }
    char byte;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void TearDown() override {
    const std::string path = "/proc/" + std::to_string(child_) + "/task/" + std::to_string(child_) + "/children";
    if (FILE* file = std::fopen(path.c_str(), "r")) {
      int grandchild = 0;
      if (std::fscanf(file, "%d", &grandchild) == 1) ::kill(grandchild, SIGKILL);
      std::fclose(file);
    }
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = -1;
};

TEST_F(ProcessTreeTest, SeesGrandchildren) {
  ProcessTree tree(child_);
  const TreeUsage usage = tree.look(~0ULL);
  EXPECT_EQ(usage.processes, 1U);
  EXPECT_GE(usage.threads, 1U);
  EXPECT_LE(usage.threads, 1U + kOfTheSanitizer);
  EXPECT_GE(usage.memory, kHeld);
  EXPECT_LT(usage.memory, kHeld + kInherited);
  EXPECT_GE(usage.cpu_usec, 130'000U);
  EXPECT_GE(tree.look(0).memory, kHeld) << "counted exactly";
}

TEST_F(ProcessTreeTest, KeepsTheTimeOfThoseThatVanish) {
  ProcessTree tree(child_);
  const std::uint64_t before = tree.look(~0ULL).cpu_usec;
  TearDown();
  EXPECT_GE(tree.look(~0ULL).cpu_usec, before);
}

}  // namespace
}  // namespace caisson::supervise
