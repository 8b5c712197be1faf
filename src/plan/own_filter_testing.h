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
  const auto number = [&](std::string_view name) { return syscallNumber(name, filter.architecture); };
  const auto answer = [&](std::string_view name) {
    return evaluate(program, static_cast<std::uint32_t>(filter.architecture), *number(name), {0, 0, 0, 0, 0, 0});
  };
  const auto allowed = [&](std::string_view name) { return number(name) && answer(name) == SECCOMP_RET_ALLOW; };
  const auto absent = [&](std::string_view name) {
    return !number(name) || (answer(name) & SECCOMP_RET_DATA) == ENOSYS;
  };
  std::vector<std::string> missing;
  for (const auto& group : kSiblings) {
    if (std::ranges::none_of(group, allowed)) continue;
    for (const std::string_view name : group) {
      if (!allowed(name) && !absent(name)) missing.emplace_back(name);
    }
  }
  return missing;
}

/// The calls whose removal from the filter missingSiblings() does not notice although it allows a sibling of theirs.
inline std::vector<std::string> unnoticedRemovals(const SyscallFilter& filter) {
  std::vector<std::string> unnoticed;
  for (const auto& group : kSiblings) {
    const auto allowing = [&](std::string_view name) {
      const auto number = syscallNumber(name, filter.architecture);
      return number && std::ranges::any_of(filter.rules, [&](const SyscallRule& rule) {
               return rule.number == *number && rule.otherwise == kAllow;
             });
    };
    if (std::ranges::count_if(group, allowing) < 2) continue;
    for (const std::string_view name : group) {
      if (!allowing(name)) continue;
      SyscallFilter without = filter;
      const int number = *syscallNumber(name, filter.architecture);
      std::erase_if(without.rules, [&](const SyscallRule& rule) { return rule.number == number; });
      if (missingSiblings(without).empty()) unnoticed.emplace_back(name);
    }
  }
  return unnoticed;
}

}  // namespace caisson::plan
