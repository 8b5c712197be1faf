#include "policy/rules/ordinary_files.h"

#include <algorithm>

#include "policy/rules/name_pattern.h"
#include "policy/rules/protected_files.h"

namespace caisson::policy {
namespace {

struct Rows {
  std::string_view group;
  std::string_view patterns;
};

constexpr Rows kRows[] = {
#define ORDINARY(group, patterns) {group, patterns},
#include "policy/rules/ordinary_files.inc"
#undef ORDINARY
};

}  // namespace

std::span<const OrdinaryPattern> ordinaryPatterns() {
  static const std::vector<OrdinaryPattern> table = [] {
    std::vector<OrdinaryPattern> made;
    for (const Rows& row : kRows) {
      for (const std::string_view pattern : splitParts(row.patterns, ' ')) made.push_back({pattern, row.group});
    }
    return made;
  }();
  return table;
}

OrdinaryFiles::OrdinaryFiles(std::span<const std::string> added) {
  for (const OrdinaryPattern& one : ordinaryPatterns()) {
    if (one.pattern.starts_with('*')) {
      endings_.emplace(one.pattern.substr(1));
    } else if (one.pattern.ends_with('*')) {
      beginnings_.emplace_back(one.pattern.substr(0, one.pattern.size() - 1));
    } else {
      names_.emplace(one.pattern);
    }
  }
  for (const std::string& pattern : added) {
    if (protectedPatternProblem(pattern)) continue;
    Pattern made{.directory = pattern.ends_with('/')};
    for (const std::string_view part : splitParts(pattern, '/')) made.parts.push_back(foldName(part));
    added_.push_back(std::move(made));
  }
}

bool OrdinaryFiles::matchesAdded(std::span<const std::string> parts) const {
  for (const Pattern& pattern : added_) {
    for (std::size_t end = pattern.parts.size(); end <= parts.size(); ++end) {
      if (end != parts.size() && !pattern.directory) continue;
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(end - pattern.parts.size());
      if (std::equal(pattern.parts.begin(), pattern.parts.end(), begin, matchesWildcard)) return true;
    }
  }
  return false;
}

bool OrdinaryFiles::match(std::string_view path, bool directory) const {
  std::vector<std::string> parts;
  for (const std::string_view part : splitParts(path, '/')) parts.push_back(foldName(part));
  if (parts.empty()) return false;
  if (matchesAdded(parts)) return true;
  const auto hidden = [](const std::string& part) { return part.starts_with('.'); };
  if (std::any_of(parts.begin(), directory ? parts.end() : parts.end() - 1, hidden)) return false;
  if (directory) return true;
  const std::string& name = parts.back();
  if (names_.contains(name)) return true;
  if (hidden(name)) return false;
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && endings_.contains(name.substr(dot))) return true;
  return std::any_of(beginnings_.begin(), beginnings_.end(),
                     [&](const std::string& beginning) { return name.starts_with(beginning); });
}

}  // namespace caisson::policy
