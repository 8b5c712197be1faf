#include "base/syscall_arguments.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

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
  for (const Architecture architecture : kArchitectures) {
    for (const auto& call : syscall_table::byName(architecture))
      EXPECT_TRUE(isSyscallArgumentCountKnown(call.name)) << call.name;
  }
}

TEST(SyscallArguments, UnknownCallHasSix) {
  EXPECT_EQ(syscallArgumentCount(-1), 6U);
  EXPECT_EQ(syscallArgumentCount(510), 6U);
  EXPECT_EQ(syscallArgumentCount(100'000), 6U);
  EXPECT_FALSE(isSyscallArgumentCountKnown("opennat"));
}

}  // namespace caisson
