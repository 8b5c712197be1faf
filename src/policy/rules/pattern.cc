#include "policy/rules/pattern.h"

#include <re2/re2.h>

namespace caisson::policy {

namespace {

/// Memory limit of one compiled pattern; RE2 does not compile larger ones.
constexpr std::int64_t kPatternMemory = 1 << 20;

RE2::Options options() {
  RE2::Options options;
  options.set_dot_nl(true);
  options.set_max_mem(kPatternMemory);
  options.set_log_errors(false);
  return options;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

/// Why the pattern can never match, like `b^a` and `a$b`; or nothing. Checks only the characters beside an anchor,
/// which finds the usual mistake; patterns with `(?`, which may change the meaning of anchors, are not checked.
std::optional<std::string> misplacedAnchor(std::string_view pattern) {
  if (pattern.find("(?") != std::string_view::npos) return std::nullopt;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at];
    if (letter == '\\') {
      ++at;
    } else if (in_class) {
      in_class = letter != ']';
    } else if (letter == '[') {
      in_class = true;
      if (at + 1 < pattern.size() && pattern[at + 1] == '^') ++at;
      if (at + 1 < pattern.size() && pattern[at + 1] == ']') ++at;  // a literal bracket
    } else if (letter == '^' && at > 0 && std::string_view("(|*?^").find(pattern[at - 1]) == std::string_view::npos) {
      return "can never match: something stands before `^`, the beginning of the command";
    } else if (letter == '$' && at + 1 < pattern.size() &&
               std::string_view(")|*?$").find(pattern[at + 1]) == std::string_view::npos) {
      return "can never match: something stands after `$`, the end of the command";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> patternProblem(std::string_view pattern) {
  if (pattern.empty()) return "is empty and would match everything";
  if (pattern.size() > kMaxPattern) return "is longer than 4096 bytes";
  const RE2 expression(piece(pattern), options());
  if (!expression.ok()) return expression.error();
  return misplacedAnchor(pattern);
}

std::optional<std::string> findPattern(std::string_view pattern, std::string_view text) {
  const RE2 expression(piece(pattern), options());
  re2::StringPiece found;
  if (!expression.ok() || !expression.Match(piece(text), 0, text.size(), RE2::UNANCHORED, &found, 1)) {
    return std::nullopt;
  }
  return std::string(found.data(), found.size());
}

}  // namespace caisson::policy
