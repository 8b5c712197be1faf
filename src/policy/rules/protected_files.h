// Files that host programs execute automatically: hooks, start-up files, editor tasks, agent and CI configuration. A
// commit holds them back and a `rw` workspace protects them.
//
// Files that a person builds or runs knowingly (a Makefile, a package.json) are project content and not protected.
// Everything here is pure: callers supply the names in a directory.
//
//   const ProtectedFiles files(policy.filesystem.workspace.protected_files);
//   if (const auto found = files.match("sub/.vscode/tasks.json")) ...  // found->object is "sub/.vscode", a directory
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace caisson::policy {

enum class ProtectedCategory : std::uint8_t {
  version_control,
  shell,
  editor,
  environment,
  task_runner,
  packages,
  interpreter,
  ci,
  agent,
  desktop,
  service,
  custom,  ///< named by the policy
};
std::string_view name(ProtectedCategory category);
/// How the host uses such a file, for messages: "editors run tasks from it".
std::string_view reason(ProtectedCategory category);

/// A pattern matches at every depth of a workspace. It has one part or several ("mise/tasks/"); `*` matches any
/// characters of one part; a trailing `/` means a directory with everything below.
struct ProtectedPattern {
  std::string_view pattern;
  ProtectedCategory category;
};

/// The built-in table, in the order of docs/protected-files.md. Git directories are handled separately, see below.
std::span<const ProtectedPattern> protectedPatterns();

/// What is expected instead of an unusable pattern ("a path relative to the workspace"), or nothing if it is valid.
std::optional<std::string> protectedPatternProblem(std::string_view pattern);

struct ProtectedMatch {
  ProtectedCategory category = ProtectedCategory::custom;
  std::string_view object;       ///< the part of the path, from its start, that is the protected file or directory
  bool whole_directory = false;  ///< `object` is a directory, protected with everything below
};

class ProtectedFiles {
 public:
  /// The built-in table and the patterns of a policy; skips those with a protectedPatternProblem().
  explicit ProtectedFiles(std::span<const std::string> added = {});

  /// Whether the name of a path relative to the workspace is protected: a pattern matches it, or it is `.git`, or lies
  /// in `.git` and is not isRepositoryData(). Ignores case, and characters that some file systems ignore in names.
  [[nodiscard]] std::optional<ProtectedMatch> match(std::string_view path) const;
  /// Whether a path ends with the first parts of a longer pattern: `.config`, for `.config/fish/`. A link there gives
  /// protected names to files elsewhere.
  [[nodiscard]] bool mayHold(std::string_view path) const;

 private:
  struct Pattern {
    std::vector<std::string> parts;  ///< folded
    bool directory = false;
    ProtectedCategory category = ProtectedCategory::custom;
  };
  /// Adds one pattern to the indexes below.
  void add(std::string_view pattern, ProtectedCategory category);

  std::vector<Pattern> patterns_;
  std::unordered_map<std::string, std::vector<std::size_t>> by_last_part_;  ///< indexes of patterns_
  std::vector<std::size_t> with_wildcard_;  ///< indexes of those with a `*` in the last part
  std::vector<std::size_t> with_parts_;     ///< indexes of those with several parts
};

/// Normalizes a name for comparison: ASCII letters become lower case, also other characters that fold to such letters,
/// and characters that case-insensitive file systems ignore are dropped, also dots and blanks at the end. The short
/// name that such file systems give to `.git` becomes `.git`. Other letters keep their case.
std::string foldName(std::string_view name);

// Git directories are recognised by their contents, as git does: any directory can be one, under any name.

/// Whether a directory is a git directory, from its entries. `has` gets folded names and may be called repeatedly.
bool hasRepositoryShape(const std::function<bool(std::string_view folded_name)>& has);

/// Whether a path relative to a git directory holds only data, such as objects and references. Everything else there
/// (configuration, hooks, a rebase in progress) can make git run a program.
bool isRepositoryData(std::string_view path);

/// Whether the first part of a path relative to a directory is a member of a git directory. A commit that turns a
/// directory into a git directory holds these back.
bool isRepositoryMember(std::string_view path);

/// Files and directories (trailing `/`) of a git directory that name programs git runs. A `rw` workspace makes these
/// read-only if they exist; git needs to write to them only to change its configuration.
std::span<const std::string_view> repositoryPrograms();

}  // namespace caisson::policy
