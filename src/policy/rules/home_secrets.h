// Files and directories of a home that usually hold keys, passwords or a history.
#pragma once

#include <span>
#include <string_view>

namespace caisson::policy {

/// Relative to a home. Hidden when a directory that holds them is shown, unless workspace.show_secrets is set; one that
/// the policy names itself is shown, with a warning.
std::span<const std::string_view> homeSecrets();

}  // namespace caisson::policy
