// How many arguments each system call has on the architecture this is compiled for.
#pragma once

#include <cstddef>
#include <string_view>

namespace caisson {

/// The largest number of arguments that call `number` takes. Registers beyond it hold whatever the program left there
/// (aarch64 clears none of them). Six for a call that the table does not list: showing an unused register is better
/// than hiding an argument.
std::size_t syscallArgumentCount(int number);

/// Whether the table lists this call, for x86_64 and aarch64 alike.
bool isSyscallArgumentCountKnown(std::string_view name);

}  // namespace caisson
