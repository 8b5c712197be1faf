// Regular expressions of a policy, in RE2's syntax: matching takes time linear in the text, whatever the pattern, so
// that a command cannot be written to make its own check run for hours.
//
// A pattern is searched for anywhere in the text (`^` and `$` tie it to the ends); `.` also matches line ends, which
// would otherwise hide the rest of a command from a pattern with `.*`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::policy {

inline constexpr std::size_t kLongestPattern = 4096;

/// Why a pattern is no use, or nothing: bad syntax, too large, or anchors placed so that nothing can match.
std::optional<std::string> patternProblem(std::string_view pattern);

/// Whether `pattern` matches somewhere in `text`, and what it matched first. A pattern with a problem matches nothing;
/// validate() refuses those before.
std::optional<std::string> findPattern(std::string_view pattern, std::string_view text);

}  // namespace caisson::policy
