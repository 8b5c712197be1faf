#include "base/never_allowed_calls.h"

#include <gtest/gtest.h>

namespace caisson {

TEST(NeverAllowedCalls, ContainDangerousCallsAndNoneThatProgramsNeed) {
  for (const char* call :
       {"ptrace", "bpf", "mount", "umount2", "setns", "unshare", "kexec_load", "io_uring_setup", "clone3", "openat2"}) {
    EXPECT_TRUE(isNeverAllowed(call)) << call;
  }
  for (const char* call : {"read", "clone", "openat", "execve"}) EXPECT_FALSE(isNeverAllowed(call)) << call;
}

TEST(NeverAllowedCalls, AreListedOnce) {
  for (const std::string_view call : kForbiddenCalls) {
    EXPECT_EQ(std::ranges::count(kForbiddenCalls, call) + std::ranges::count(kAbsentCalls, call), 1) << call;
  }
}

}  // namespace caisson
