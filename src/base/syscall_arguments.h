// The number of arguments of each system call on the target architecture.
#pragma once

#include <cstddef>
#include <string_view>

namespace caisson {

/// The largest number of arguments that call `number` takes. Registers beyond it hold leftovers of the program (aarch64
/// clears none). Returns six for a call missing from the table: an unused register in a log is better than a hidden
/// argument.
std::size_t syscallArgumentCount(int number);

/// Whether the table contains this call, of x86_64 or aarch64.
bool isSyscallArgumentCountKnown(std::string_view name);

}  // namespace caisson
