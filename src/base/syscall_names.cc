#include "base/syscall_names.h"

#include <algorithm>

#include "base/syscall_table.h"

namespace caisson {

using syscall_table::Entry;

std::optional<int> syscallNumber(std::string_view name, Architecture architecture) {
  return syscall_table::numberOf(name, architecture);
}

std::string_view syscallName(int number, Architecture architecture) {
  const auto calls = syscall_table::byNumber(architecture);
  const auto found = std::ranges::lower_bound(calls, number, {}, &Entry::number);
  return found == calls.end() || found->number != number ? std::string_view() : found->name;
}

bool isSyscallName(std::string_view name) {
  return syscallNumber(name, Architecture::x86_64) || syscallNumber(name, Architecture::aarch64);
}

}  // namespace caisson
