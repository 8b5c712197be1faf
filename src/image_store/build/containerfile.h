// Parses a Containerfile (Dockerfile): the instructions that people use. Others are errors, never ignored.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::image {

struct Instruction {
  std::string name;                          ///< upper case: "RUN"
  std::map<std::string, std::string> flags;  ///< of COPY and ADD: "from", "chmod", "chown"
  std::vector<std::string> words;            ///< arguments; of a shell form one text
  bool json = false;                         ///< written as a JSON list
  std::string text;                          ///< everything after the name
  std::size_t line = 0;
};

/// Why an instruction is refused for which substitute() returns nothing.
inline constexpr std::string_view kTooMuchText = "the variables of the file expand to more than 4 MiB";

using Variables = std::map<std::string, std::string>;

/// Comments, continuation lines and flags are resolved, variables are not. At most 1 MiB.
Result<std::vector<Instruction>> parseContainerfile(std::string_view text);

/// Bytes that the variables of one file may still expand to: `ENV A=$A$A` doubles a value with each line.
struct ExpansionRoom {
  std::size_t bytes = 4U << 20;  // more would not fit into a configuration
};

/// Replaces $NAME, ${NAME}, ${NAME:-default} and ${NAME:+other}; `\$` is a dollar sign. Unknown variables are empty.
/// Takes the result's size from `room`; nothing if that is too small.
std::optional<std::string> substitute(std::string_view text, const Variables& variables, ExpansionRoom& room);

/// Splits `KEY=VALUE KEY2="a b"` as ENV, LABEL and ARG have it; the old form `ENV KEY VALUE` gives one pair.
Result<std::vector<std::pair<std::string, std::string>>> keyValues(const Instruction& instruction,
                                                                   const Variables& variables, ExpansionRoom& room);

/// Splits at blanks outside quotes, and removes the quotes.
std::vector<std::string> splitQuoted(std::string_view text);

/// Whether a path (relative, without `./`) is excluded by the lines of a .dockerignore; later lines win, `!` includes.
bool isIgnored(const std::vector<std::string>& lines, const std::string& path);

}  // namespace caisson::image
