// Files that commands in protected files call: the `scripts/check.sh` of a git hook, the program that an agent's
// settings name. The host runs them with the hook, though their own names are ordinary. Pure.
//
// Only what stands first in a command counts, and the script that is given to a shell or another interpreter. What
// those scripts call in turn does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// How a protected file holds commands.
enum class CommandSource : std::uint8_t {
  none,
  script,    ///< a shell script
  settings,  ///< JSON, TOML or YAML, in which some keys have commands as their value
};

/// From the file's name: `lint.json`, `pre-commit`.
CommandSource commandSource(std::string_view name);

/// A file of which calledFiles() reads no more than this.
inline constexpr std::size_t kMaxCommandSource = 1U << 20;

struct CalledPath {
  std::string path;  ///< as written, without quotes
  bool after_variable =
      false;  ///< it stood behind a variable (`$ROOT/x`, `$(dirname "$0")/x`), which may be any directory
  bool operator==(const CalledPath&) const = default;
};
/// The paths that the commands of a file call, relative to the directory in which the host runs them; each once.
std::vector<CalledPath> calledFiles(CommandSource source, std::string_view text);

}  // namespace caisson::policy
