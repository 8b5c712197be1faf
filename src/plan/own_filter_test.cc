#include "plan/own_filter.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <csignal>

#include "base/syscall_names.h"

namespace caisson::plan {
namespace {

TEST(OwnFilter, SignalsReachOnlyTheProcessItself) {
  constexpr std::string_view kCalls[] = {"read"};
  rules::Rules list = allowCalls({kCalls});
  allowAbort(list, 1234);
  const auto program = compile(denyUnlisted(std::move(list)));
  ASSERT_TRUE(program) << program.error().message();
  const auto signal = [&](std::uint64_t process) {
    const std::uint64_t arguments[6] = {process, process, SIGKILL, 0, 0, 0};
    return evaluate(*program, nativeArchitecture(), syscallNumber("tgkill").value_or(-1), arguments);
  };
  EXPECT_EQ(signal(1234), SECCOMP_RET_ALLOW);
  EXPECT_EQ(signal(1), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(signal(0xffffffff), SECCOMP_RET_ERRNO | EPERM);
}

}  // namespace
}  // namespace caisson::plan
