// Files that are shown to payloads without the secrets in them. Pure. policy/rules/secret_files.h has those that are
// hidden.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::plan {

/// What is shown of a configuration of git.
struct ShownConfig {
  std::string text;
  bool changed = false;  ///< the file itself holds more
};

/// The settings that policy::shownGitConfig() shows; nullopt if git would refuse the text.
std::optional<ShownConfig> shownConfig(std::string_view text);

}  // namespace caisson::plan
