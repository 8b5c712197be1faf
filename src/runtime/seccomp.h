// A plan's system-call filter as the seccomp part of an OCI configuration.
#pragma once

#include <cstdint>
#include <optional>

#include "base/json_writer.h"
#include "plan/plan.h"

namespace caisson::runtime {

/// The plan's filter as data; none if the plan has no filter.
std::optional<plan::SyscallFilter> filterOf(const plan::Plan& plan);

/// Where rules on arguments are enforced.
enum class ArgumentRules : std::uint8_t {
  by_init,     ///< by the filter that pid 1 installs, which reports attempts: calls with such rules are allowed here
  in_profile,  ///< here, where libseccomp can express them exactly; a call with other rules is allowed
};

/// Writes the value of `linux.seccomp`. Calls are allowed or denied by name; those that the runtime and pid 1 need
/// before the payload starts are always allowed.
void writeSeccomp(JsonWriter& json, const plan::SyscallFilter& filter, ArgumentRules arguments);

}  // namespace caisson::runtime
