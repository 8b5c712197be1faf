// Passwords in command lines: one reading of them for strings, lists of arguments and whole texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::cli {

struct CommandWord {
  std::string text;    ///< without its quotes
  bool first = false;  ///< of a command
};

/// The words of all commands in a text: of a shell, or a list of arguments in JSON or YAML. A command continues in the
/// next line after a backslash, and within a list.
std::vector<CommandWord> commandWords(std::string_view text);

/// A command with a password behind a flag whose name does not say so (`mysql -pWORD`, `redis-cli -a WORD`,
/// `curl -u NAME:WORD`), or the value of a header (`-H "X-Team: WORD"`).
bool hasCommandSecret(std::string_view text);

}  // namespace caisson::cli
