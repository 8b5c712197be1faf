#include "base/syscall_names.h"

#include "base/syscall_table.h"

namespace caisson {

using syscall_table::Entry;
using syscall_table::kElsewhere;
using syscall_table::kTables;

std::optional<int> syscallNumber(std::string_view name) { return syscall_table::numberOf(name); }

std::string_view syscallName(int number) {
  const auto* const end = kTables.by_number.data() + kTables.count;
  const auto* const found =
      std::lower_bound(kTables.by_number.data(), end, number, [](const Entry& e, int n) { return e.number < n; });
  if (found == end || found->number != number) return {};
  return found->name;
}

bool isSyscallName(std::string_view name) {
  return syscallNumber(name).has_value() || std::ranges::binary_search(kElsewhere, name);
}

}  // namespace caisson
