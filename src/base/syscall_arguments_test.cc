#include "base/syscall_arguments.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "base/syscall_names.h"
#include "base/syscall_table.h"

namespace caisson {

TEST(SyscallArguments, CountsMatchTheKernelPrototypes) {
  EXPECT_EQ(syscallArgumentCount(SYS_getpid), 0U);
  EXPECT_EQ(syscallArgumentCount(SYS_unshare), 1U);
  EXPECT_EQ(syscallArgumentCount(SYS_setns), 2U);
  EXPECT_EQ(syscallArgumentCount(SYS_bpf), 3U);
  EXPECT_EQ(syscallArgumentCount(SYS_ptrace), 4U);
  EXPECT_EQ(syscallArgumentCount(SYS_keyctl), 5U);
  EXPECT_EQ(syscallArgumentCount(SYS_perf_event_open), 5U);
  EXPECT_EQ(syscallArgumentCount(SYS_process_vm_readv), 6U);
  EXPECT_EQ(syscallArgumentCount(469), 5U) << "file_setattr, newer than the build headers";
}

TEST(SyscallArguments, EveryNamedCallIsListed) {
  constexpr int kNewestListed = 471;
  for (int number = 0; number <= kNewestListed; ++number) {
    const std::string_view name = syscallName(number);
    EXPECT_TRUE(name.empty() || isSyscallArgumentCountKnown(name)) << name;
  }
  for (const std::string_view name : syscall_table::kElsewhere) EXPECT_TRUE(isSyscallArgumentCountKnown(name)) << name;
}

TEST(SyscallArguments, UnknownCallHasSix) {
  EXPECT_EQ(syscallArgumentCount(-1), 6U);
  EXPECT_EQ(syscallArgumentCount(510), 6U);
  EXPECT_EQ(syscallArgumentCount(100'000), 6U);
  EXPECT_FALSE(isSyscallArgumentCountKnown("opennat"));
}

}  // namespace caisson
