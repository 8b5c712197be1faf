// The built-in profiles. They are TOML files in profiles/, compiled into code at build time, so nothing is parsed at
// run time.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "policy/model.h"

namespace caisson::policy {

/// A built-in profile by name, or nothing.
std::optional<Policy> builtin(std::string_view name);

/// The profile of the command line and of MCP, if none is named. Policy files that extend nothing inherit `bash`.
inline constexpr std::string_view kDefaultProfile = "dev";

/// The names `builtin` takes, the default first.
std::span<const std::string_view> builtinNames();

}  // namespace caisson::policy
