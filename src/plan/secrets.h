// Files that are shown to payloads without the secrets in them. Pure. policy/rules/secret_files.h has those that are
// hidden.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::plan {

/// A git configuration with the settings that policy::shownGitConfig() shows; nullopt if these are all.
std::optional<std::string> redactGitConfig(std::string_view text);

}  // namespace caisson::plan
