// For tests of the filters of our own processes.
#pragma once

#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/syscall_names.h"
#include "plan/call_siblings.h"
#include "plan/syscall_filter.h"

namespace caisson::plan {

/// Calls that the filter denies although it allows another call that the C library may make for the same function.
/// ENOSYS is an answer as well: the library then makes the other call.
inline std::vector<std::string> missingSiblings(const SyscallFilter& filter) {
  const std::vector<sock_filter> program = *compile(filter);
  const auto answer = [&](std::string_view name) {
    const std::uint64_t none[6] = {};
    return evaluate(program, nativeArchitecture(), *syscallNumber(name), none);
  };
  std::vector<std::string> missing;
  for (const auto& group : kSiblings) {
    const auto allowed = [&](std::string_view name) {
      return syscallNumber(name) && answer(name) == SECCOMP_RET_ALLOW;
    };
    if (std::ranges::none_of(group, allowed)) continue;
    for (const std::string_view name : group) {
      if (!syscallNumber(name) || allowed(name) || answer(name) == (SECCOMP_RET_ERRNO | ENOSYS)) continue;
      missing.emplace_back(name);
    }
  }
  return missing;
}

}  // namespace caisson::plan
