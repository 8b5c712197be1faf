#include "plan/own_filter.h"

#include <csignal>

#include "plan/own_filter_testing.h"
#include "plan/syscall_filter_testing.h"

namespace caisson::plan {
namespace {

class OwnFilter : public OnEachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, OwnFilter, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(OwnFilter, SignalsReachOnlyTheProcessItself) {
  constexpr std::string_view kCalls[] = {"read"};
  rules::Rules list = allowCalls({kCalls}, architecture());
  allowAbort(list, 1234);
  const auto program = compile(denyUnlisted(std::move(list)));
  ASSERT_TRUE(program) << program.error().message();
  const auto signal = [&](std::uint64_t process) {
    return evaluateCall(*program, "tgkill", {{process, process, SIGKILL}});
  };
  EXPECT_EQ(signal(1234), SECCOMP_RET_ALLOW);
  EXPECT_EQ(signal(1), SECCOMP_RET_ERRNO | EPERM);
  EXPECT_EQ(signal(0xffffffff), SECCOMP_RET_ERRNO | EPERM);
}

TEST_P(OwnFilter, MissingSiblingsAreFound) {
  constexpr std::string_view kCalls[] = {"fchmodat", "epoll_pwait", "read"};
  const SyscallFilter filter = denyUnlisted(allowCalls({kCalls}, architecture()));
  const std::vector<std::string> missing = architecture() == Architecture::x86_64
                                               ? std::vector<std::string>{"chmod", "fchmodat2", "epoll_wait"}
                                               : std::vector<std::string>{"fchmodat2"};
  EXPECT_EQ(missingSiblings(filter), missing);
}

}  // namespace
}  // namespace caisson::plan
