// A declared tool's command with placeholders for values:
//
//   grep -n -- {pattern} {file}          one value each, always one argument
//   convert --size={size} -- {...}       inside an argument; and all further arguments
//   awk '{{print $1}}'                   literal braces are doubled
//
// A value is never split, and no shell interprets it. If the program is an interpreter, a placeholder must be a whole
// argument: inside a script's text, the value would become code.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::tool {

/// Checks whether a tool can be declared with this command. The error names the invalid argument and the reason.
Result<void> checkTemplate(std::span<const std::string> words);

/// The names of its placeholders, without {...}, in the order of first use.
std::vector<std::string> parameters(std::span<const std::string> words);
/// Whether it accepts further arguments ({...}).
bool takesMore(std::span<const std::string> words);

/// The command with its values. Missing and unknown values are errors. A value at the start of an argument must not
/// begin with `-` unless the argument follows `--`: the program would read it as an option. `more` replaces {...} and
/// is not checked for that.
Result<std::vector<std::string>> fillTemplate(std::span<const std::string> words,
                                              const std::map<std::string, std::string, std::less<>>& values,
                                              std::span<const std::string> more);

}  // namespace caisson::tool
