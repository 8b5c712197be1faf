// What a sandbox sees of a git configuration: an allowlist of keys. Everything else may hold a password or a token:
// `imap.pass`, `http.proxy`, a credential helper, keys of other programs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

struct ShownGitConfig {
  std::string text;                   ///< a configuration with the values of known keys, URLs without credentials
  std::vector<std::string> left_out;  ///< known keys that are not in it, as "section.key"; each once
  bool complete = true;               ///< nothing is left out or changed: the file can be shown as it is
};

/// nullopt: git would refuse the text. A file that only stands where git looks for a configuration must not be judged
/// less strictly than elsewhere.
std::optional<ShownGitConfig> shownGitConfig(std::string_view text);

/// Whether the text is the configuration that git writes into a git directory.
bool isRepositoryConfig(std::string_view text);

/// A text in which the user part and the query of each `scheme://user:password@host/path?query` are replaced. A plain
/// user `git` stays: it is the name that servers expect.
std::string withoutUrlCredentials(std::string_view text);

}  // namespace caisson::policy
