#include "base/syscall_names.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace caisson {

TEST(SyscallNames, MatchTheKernelsNumbers) {
  EXPECT_EQ(syscallNumber("read"), SYS_read);
  EXPECT_EQ(syscallNumber("openat2"), SYS_openat2);
  EXPECT_EQ(syscallName(SYS_execve), "execve");
  EXPECT_EQ(syscallNumber("file_setattr"), 469);
  EXPECT_EQ(syscallName(469), "file_setattr");
}

TEST(SyscallNames, EveryNumberMapsBackToItsName) {
  int known = 0;
  for (int number = 0; number < 600; ++number) {
    const std::string_view name = syscallName(number);
    if (name.empty()) continue;
    ++known;
    EXPECT_EQ(syscallNumber(name), number) << name;
  }
  EXPECT_GT(known, 300);
}

TEST(SyscallNames, UnknownStaysUnknown) {
  EXPECT_FALSE(syscallNumber(""));
  EXPECT_FALSE(syscallNumber("opennat"));
  EXPECT_FALSE(syscallNumber("syscalls"));
  EXPECT_EQ(syscallName(-1), "");
  EXPECT_EQ(syscallName(100000), "");
}

TEST(SyscallNames, NameOfAnotherArchitectureIsKnown) {
  EXPECT_TRUE(isSyscallName("open"));
  EXPECT_TRUE(isSyscallName("vfork"));
  EXPECT_FALSE(isSyscallName("vforkk"));
}

}  // namespace caisson
