// Files that a git configuration makes git execute or read as configuration: core.hooksPath, include.path, the words of
// filters and other commands. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// Of one configuration.
inline constexpr std::size_t kMaxGitConfigPaths = 4096;

struct GitConfigPaths {
  std::vector<std::string> included;  ///< as written; relative to the directory of the configuration file
  std::vector<std::string> executed;  ///< as written; relative to the top of the work tree; `~/` is the home
  /// Files that a command may run: `x` in `sh x`. Not directories; as above.
  std::vector<std::string> arguments;
  std::vector<std::string> hooks;  ///< directories whose hooks git executes, or copies to new repositories; as above
  bool complete = true;            ///< false: there are more than kMaxGitConfigPaths
  std::string work_tree;           ///< core.worktree, relative to the git directory; empty: not set
};

/// Reads a configuration as tolerantly as git, and takes no part of it as an error. Of a command, every word that looks
/// like a path counts: it may be the program or its script. So do other arguments, unless the program runs none.
/// `$HOME/x` is `~/x`, and after `cd sub` or `env -C sub` the word `./x` is also `sub/x`.
GitConfigPaths pathsInGitConfig(std::string_view text);

/// The names of the hooks that git executes.
std::span<const std::string_view> gitHookNames();

}  // namespace caisson::policy
