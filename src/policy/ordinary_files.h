// Kinds of files that are the content of a project. A commit that a model starts contains only these unless it names
// others, so that a file which some program of the host executes, and which no table knows yet, does not pass unseen.
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
  /// The built-in table and the patterns of a policy.
  explicit OrdinaryFiles(std::span<const std::string> added = {});

  /// Whether a path relative to the workspace is the content of a project by its name. What lies below a hidden
  /// directory is not, unless a pattern of the policy has that directory.
  [[nodiscard]] bool match(std::string_view path, bool directory) const;

 private:
  struct Pattern {
    std::vector<std::string> parts;
    bool directory = false;
  };
  [[nodiscard]] bool matchesAdded(std::span<const std::string> parts) const;

  std::unordered_set<std::string> endings_;  ///< of "*.ending"
  std::unordered_set<std::string> names_;
  std::vector<std::string> beginnings_;  ///< of "name.*"
  std::vector<Pattern> added_;
};

}  // namespace caisson::policy
