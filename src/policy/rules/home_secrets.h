// Files and directories of a home that usually hold keys, passwords or a history.
#pragma once

#include <span>
#include <string_view>

namespace caisson::policy {

/// Relative to a home. Never shown, even when the home itself is.
std::span<const std::string_view> homeSecrets();

}  // namespace caisson::policy
