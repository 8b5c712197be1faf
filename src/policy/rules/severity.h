// The severity of a blocked system call, and what it indicates.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/fields.h"
#include "policy/model.h"

namespace caisson::policy {

enum class Severity : std::uint8_t {
  low,       ///< counted: runtimes probe such calls and work without them
  high,      ///< several within a short time kill the sandbox
  critical,  ///< one kills the sandbox
};

/// The kind of attack that an attempt indicates.
enum class Indicator : std::uint8_t { filesystem, process, network, syscall };

std::string_view name(Severity severity);    ///< "LOW"
std::string_view name(Indicator indicator);  ///< "FILESYSTEM"

/// Uses the policy's lists, or the built-in ones if the policy has none.
Severity severityOf(const Syscalls& policy, std::string_view call);

/// `syscall` for calls that are in no other group.
Indicator indicatorOf(std::string_view call);

/// For `syscalls.critical` and `syscalls.high`: the list in force.
Value severityList(const Syscalls& policy, Severity severity);

/// Whether `policy` lowers the severity of a call that had this severity in `base`.
bool loosens(const Syscalls& base, const Syscalls& policy, Severity severity);

}  // namespace caisson::policy
