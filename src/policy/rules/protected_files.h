// Files that host programs execute automatically: hooks, start-up files, editor tasks, agent and CI configuration. A
// commit holds them back and a `rw` workspace protects them.
//
// Files that a person builds or runs knowingly (a Makefile, a package.json) are project content and not protected.
// Everything here is pure: callers supply the names in a directory.
//
// A rule belongs to a place of the host: with the workspace P/.vscode, `tasks.json` is as protected as
// `.vscode/tasks.json` is with the workspace P. So callers name the directory that paths are relative to.
//
//   const ProtectedFiles files(policy.filesystem.workspace.protected_files, "/home/a/project");
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
  /// The part of the path, from its start, that is the protected file or directory; empty: a directory above all paths.
  std::string_view object;
  bool whole_directory = false;  ///< `object` is a directory, protected with everything below
};

class ProtectedFiles {
 public:
  /// The built-in table and the patterns of a policy; skips those with a protectedPatternProblem(). `directory` is the
  /// absolute path on the host that paths are relative to; empty: nothing is known about it.
  explicit ProtectedFiles(std::span<const std::string> added = {}, std::string_view directory = {});

  /// The same patterns for paths relative to another directory.
  [[nodiscard]] ProtectedFiles at(std::string_view directory) const;

  /// Whether the name of a path is protected: a pattern matches it with the directories above it, or it is `.git`, or
  /// lies in `.git` and is not isRepositoryData(). Ignores case, and characters that some file systems ignore in names.
  /// A work tree that an agent keeps in its own directory (`.claude/worktrees/NAME`) is judged as if it were elsewhere.
  /// Files of build servers in packages that others published (`node_modules/x/.travis.yml`) are not protected.
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
  /// Patterns with indexes. Matching runs for every name of a workspace, so few patterns are compared.
  class Table {
   public:
    void add(std::string_view pattern, ProtectedCategory category);
    /// The first pattern that the part `at` ends, or null.
    [[nodiscard]] const Pattern* find(const std::vector<std::string>& folded, std::size_t at) const;
    /// Whether a path ends with the first parts of a longer pattern.
    [[nodiscard]] bool endsWithBeginning(const std::vector<std::string>& folded) const;
    /// The parts of the longest pattern, at least one.
    [[nodiscard]] std::size_t longest() const { return longest_; }

   private:
    using Indexes = std::vector<std::size_t>;  ///< of patterns_
    struct Beginning {
      std::size_t pattern;
      std::size_t count;  ///< of its parts
    };
    std::vector<Pattern> patterns_;
    std::unordered_map<std::string, Indexes> by_last_part_;
    // Those with a `*` in the last part.
    std::unordered_map<std::string, Indexes> by_ending_;  ///< "*-gdb.py", by ".py"
    std::unordered_map<char, Indexes> by_first_letter_;   ///< ".huskyrc.*"
    Indexes with_wildcard_;                               ///< all others
    // Beginnings of patterns with several parts.
    std::unordered_map<std::string, std::vector<Beginning>> by_beginning_;  ///< by their last part
    std::vector<Beginning> beginnings_with_wildcard_;                       ///< those with a `*` in it
    std::size_t longest_ = 1;
  };
  /// The built-in table, made once: it has more than 1,000 patterns.
  static const Table& builtIn();
  void setDirectory(std::string_view directory);
  /// The folded parts of a path, after those of the directory.
  [[nodiscard]] std::vector<std::string> foldedParts(const std::vector<std::string_view>& parts) const;
  [[nodiscard]] const Pattern* find(const std::vector<std::string>& folded, std::size_t at) const;
  /// Whether a pattern protects the directory that is the part `at`, with everything below it.
  [[nodiscard]] bool protectsBelow(const std::vector<std::string>& folded, std::size_t at) const;

  Table added_;
  std::vector<std::string> above_;  ///< folded parts of the directory that can matter
  std::size_t first_ = 0;           ///< of these and a path's parts, the first that can decide
};

/// Normalizes a name for comparison: ASCII letters become lower case, also other characters that fold to such letters,
/// and characters that case-insensitive file systems ignore are dropped, also dots and blanks at the end. The short
/// name that such file systems give to `.git` becomes `.git`. Other letters keep their case.
std::string foldName(std::string_view name);

/// Whether this is a git directory's `config` or `config.worktree`, in any spelling.
bool isConfigName(std::string_view name);

// Git directories are recognised by their contents, as git does: any directory can be one, under any name.

/// Whether a directory is a git directory, from its entries. `has` gets folded names and may be called repeatedly.
bool hasRepositoryShape(const std::function<bool(std::string_view folded_name)>& has);

/// Whether a directory with an entry of this name could be a git directory because of it: a quick check before names
/// are folded.
bool mayShapeRepository(std::string_view name);

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
