// Kinds of files that are the content of a project. A commit that a model starts contains only these unless it names
// others, so that a file that some host program executes, but that no table lists yet, is not committed unnoticed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace caisson::policy {

/// Patterns are those of protected_files.h.
struct OrdinaryPattern {
  std::string_view pattern;
  std::string_view group;
};
/// The built-in table, in the order of docs/protected-files.md.
std::span<const OrdinaryPattern> ordinaryPatterns();

class OrdinaryFiles {
 public:
  /// The built-in table and the patterns of a policy; skips those with a protectedPatternProblem().
  explicit OrdinaryFiles(std::span<const std::string> added = {});

  /// Whether the name of a path relative to the workspace is that of project content. Every directory is, except a
  /// hidden one and all below it, unless a pattern of the policy includes that. `directory`: the path is a directory.
  [[nodiscard]] bool match(std::string_view path, bool directory) const;

 private:
  struct Pattern {
    std::vector<std::string> parts;
    bool directory = false;
  };
  /// Whether a pattern of the policy matches the last of the folded `parts` of a path. Only a pattern that ends in `/`
  /// also matches everything below the directory that it names.
  [[nodiscard]] bool matchesAdded(std::span<const std::string> parts) const;

  std::unordered_set<std::string> endings_;  ///< of "*.ending"
  std::unordered_set<std::string> names_;
  std::vector<std::string> beginnings_;  ///< of "name.*"
  std::vector<Pattern> added_;
};

}  // namespace caisson::policy
