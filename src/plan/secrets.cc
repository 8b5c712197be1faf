#include "plan/secrets.h"

#include <string>
#include <string_view>

#include "policy/rules/git_config_shown.h"

namespace caisson::plan {

std::optional<ShownConfig> shownConfig(std::string_view text) {
  auto shown = policy::shownGitConfig(text);
  if (!shown) return std::nullopt;
  if (shown->complete) return ShownConfig{.text = std::string(text)};
  // In the file itself, so that who wonders finds them where they are missing.
  std::string named;
  for (const std::string& key : shown->left_out) named += " " + key;
  return ShownConfig{.text = (named.empty() ? "" : "# not shown in the sandbox:" + named + "\n") + shown->text,
                     .changed = true};
}

}  // namespace caisson::plan
