// Regular expressions of a policy, in RE2's syntax: matching time is linear in the text for every pattern, so that a
// crafted command cannot make its own check run for hours.
//
// A pattern matches anywhere in the text (`^` and `$` anchor it); `.` also matches line ends, which would otherwise
// hide the rest of a command from a pattern with `.*`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::policy {

inline constexpr std::size_t kMaxPattern = 4096;

/// Why a pattern is unusable, or nothing: empty, bad syntax, too large, or anchors with which nothing can match.
std::optional<std::string> patternProblem(std::string_view pattern);

/// Returns the first match of `pattern` in `text`, if any. An invalid pattern matches nothing; validate() rejects those
/// before.
std::optional<std::string> findPattern(std::string_view pattern, std::string_view text);

}  // namespace caisson::policy
