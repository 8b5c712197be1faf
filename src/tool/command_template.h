// A declared tool's command with places for values:
//
//   grep -n -- {pattern} {file}          one value each, one word each, whatever is in it
//   convert --size={size} -- {...}       inside a word; and all further words
//   awk '{{print $1}}'                   braces themselves are doubled
//
// A value is never split, and no shell looks at it. Where a program is an interpreter, a place must be a whole word:
// inside a script's text a value would become part of the program.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::tool {

/// Whether a tool can be declared with this command. The error says which word is wrong, and why.
Result<void> checkTemplate(std::span<const std::string> words);

/// The values it takes, in the order of their first place.
std::vector<std::string> parameters(std::span<const std::string> words);
/// Whether it takes further words.
bool takesMore(std::span<const std::string> words);

/// The command with its values. Every value must be given and known. One that begins with `-` and would be a word of
/// its own is refused unless `--` stands before it: the program would read it as an option.
Result<std::vector<std::string>> fillTemplate(std::span<const std::string> words,
                                              const std::map<std::string, std::string, std::less<>>& values,
                                              std::span<const std::string> more);

}  // namespace caisson::tool
