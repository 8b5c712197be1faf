// Patterns of names in a workspace, as in policies: "name", "*.ending", "directory/", "two/parts".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// The parts between separators, without empty ones.
inline std::vector<std::string_view> splitParts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Whether the whole text matches; `*` matches any characters, also none. Time is at most linear in the product of both
/// lengths.
inline bool matchesWildcard(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace caisson::policy
