// How grave an attempt at a refused system call is (SPEC S3), and what it hints at (S4).
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/fields.h"
#include "policy/model.h"

namespace caisson::policy {

enum class Severity : std::uint8_t {
  low,       ///< counted: runtimes probe such calls and go on without
  high,      ///< several within a short time end the sandbox
  critical,  ///< one ends the sandbox
};

/// What an attempt would have been a step of (S4).
enum class Indicator : std::uint8_t { filesystem, process, network, syscall };

std::string_view name(Severity severity);    ///< "LOW"
std::string_view name(Indicator indicator);  ///< "FILESYSTEM"

/// By the policy's lists, or the built-in ones where the policy has none.
Severity severityOf(const Syscalls& policy, std::string_view call);

Indicator indicatorOf(std::string_view call);

/// For `syscalls.critical` and `syscalls.high`: the list in force.
Value severityList(const Syscalls& policy, Severity severity);

/// Whether a call that was of this severity in `base` is of a lower one in `policy`.
bool loosens(const Syscalls& base, const Syscalls& policy, Severity severity);

}  // namespace caisson::policy
