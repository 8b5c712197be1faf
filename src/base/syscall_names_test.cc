#include "base/syscall_names.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <utility>

namespace caisson {

TEST(SyscallNames, MatchTheKernelsNumbers) {
  EXPECT_EQ(syscallNumber("read"), SYS_read);
  EXPECT_EQ(syscallNumber("openat2"), SYS_openat2);
  EXPECT_EQ(syscallName(SYS_execve), "execve");
  EXPECT_EQ(syscallNumber("file_setattr"), 469);
  EXPECT_EQ(syscallName(469), "file_setattr");
}

TEST(SyscallNames, MatchTheHeadersOfTheCompiler) {
  const std::pair<std::string_view, int> headers[] = {
#define CAISSON_SYSCALL(name) {#name, __NR_##name},
#include "base/syscall_headers.inc"
#undef CAISSON_SYSCALL
  };
  constexpr int kNewestListed = 469;
  for (const auto& [name, number] : headers) {
    if (number > kNewestListed || name == "uretprobe" || name == "uprobe") continue;  // newer than the tables
    EXPECT_EQ(syscallNumber(name), number) << name;
  }
}

TEST(SyscallNames, EveryNumberMapsBackToItsName) {
  for (const Architecture architecture : kArchitectures) {
    int known = 0;
    for (int number = 0; number < 600; ++number) {
      const std::string_view name = syscallName(number, architecture);
      if (name.empty()) continue;
      ++known;
      EXPECT_EQ(syscallNumber(name, architecture), number) << name;
    }
    EXPECT_GT(known, 300);
  }
}

TEST(SyscallNames, DifferByArchitecture) {
  EXPECT_EQ(syscallNumber("read", Architecture::x86_64), 0);
  EXPECT_EQ(syscallNumber("read", Architecture::aarch64), 63);
  EXPECT_EQ(syscallNumber("chmod", Architecture::x86_64), 90);
  EXPECT_FALSE(syscallNumber("chmod", Architecture::aarch64));
  EXPECT_EQ(syscallName(90, Architecture::aarch64), "capget");
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
