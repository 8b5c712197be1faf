#include "plan/secrets.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "policy/rules/git_config_shown.h"

namespace caisson::plan {

std::optional<std::string> redactGitConfig(std::string_view text) {
  policy::ShownGitConfig shown = policy::shownGitConfig(text);
  if (shown.complete) return std::nullopt;
  // In the file itself, so that who wonders finds them where they are missing.
  std::string named;
  for (const std::string& key : shown.left_out) {
    if (std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; })) named += " " + key;
  }
  return (named.empty() ? "" : "# not shown in the sandbox:" + named + "\n") + shown.text;
}

}  // namespace caisson::plan
