// For tests: the filters of policies, and their results for a call by the kernel's evaluation rules.
#pragma once

#include <gtest/gtest.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/syscall_names.h"
#include "plan/syscalls.h"
#include "policy/profiles/profiles.h"

namespace caisson::plan {

using policy::Policy;
using Filter = std::vector<sock_filter>;

constexpr std::uint32_t kReturnAllow = SECCOMP_RET_ALLOW;
/// Denied without notification; denied by the supervisor, which is notified.
constexpr std::uint32_t refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }
constexpr std::uint32_t reported(int error) { return SECCOMP_RET_USER_NOTIF | static_cast<std::uint32_t>(error); }

struct Arguments {
  std::uint64_t values[6] = {};
};

/// The compiled program of a filter; fails the test if there is none.
inline Filter compiled(const Result<SyscallFilter>& filter) {
  EXPECT_TRUE(filter) << filter.error().message();
  if (!filter) return {};
  const auto program = compile(*filter);
  EXPECT_TRUE(program);
  return program ? *program : Filter();
}

/// Tests that run for every architecture, on any.
class OnEachArchitecture : public ::testing::TestWithParam<Architecture> {
 protected:
  static Architecture architecture() { return GetParam(); }
  static std::uint32_t architectureNumber() { return static_cast<std::uint32_t>(GetParam()); }

  /// The program compiled at build time exists for the native architecture only.
  static Filter builtin() {
    if (GetParam() == kNative) return {builtinProgram().begin(), builtinProgram().end()};
    return compiled(filterForFull(Policy{}, {}, GetParam()));
  }
  static Filter programFor(const Policy& policy, ExecToken token = {}) {
    return compiled(filterForFull(policy, token, GetParam()));
  }
  static Filter programForProcess(const Policy& policy = {}) { return compiled(filterForProcess(policy, GetParam())); }
  static Filter programForTier(const Policy& policy = {}) {
    return compiled(filterForLandlockTier(policy, GetParam()));
  }

  /// What `program` returns for a call: a SECCOMP_RET_* value.
  static std::uint32_t evaluateNumber(const Filter& program, int number, const std::uint64_t (&arguments)[6]) {
    return evaluate(program, architectureNumber(), number, arguments);
  }
  static std::uint32_t evaluateCall(const Filter& program, std::string_view name, const Arguments& arguments = {}) {
    const auto number = syscallNumber(name, GetParam());
    EXPECT_TRUE(number) << name;
    return evaluateNumber(program, number.value_or(-1), arguments.values);
  }

  /// Whether the architecture has the call.
  static bool here(std::string_view name) { return syscallNumber(name, GetParam()).has_value(); }

  /// All programs in which a rule about a hostile call must hold.
  static std::vector<std::pair<std::string, Filter>> everyProgram() {
    return {{"built-in", builtin()},
            {"strict", programFor(*policy::builtin("strict"), {1, 2})},
            {"process", programForProcess()},
            {"landlock tier", programForTier()}};
  }
};

inline constexpr auto nameOfArchitecture = [](const ::testing::TestParamInfo<Architecture>& info) {
  return std::string(architectureName(info.param));
};

inline bool sameProgram(const Filter& a, const Filter& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const sock_filter& x, const sock_filter& y) {
    return x.code == y.code && x.jt == y.jt && x.jf == y.jf && x.k == y.k;
  });
}

}  // namespace caisson::plan
