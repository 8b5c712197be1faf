// What a session changed, and how it is committed to the real workspace. Included by caisson/session.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

enum class ChangeKind : std::uint8_t { added, modified, deleted };
std::string_view name(ChangeKind kind);

/// One path that differs. A deleted directory is one change, regardless of its content.
struct Change {
  std::string path;  ///< relative to the workspace
  ChangeKind kind = ChangeKind::modified;
  std::string type;        ///< of the current file, or of the deleted one: as in FileEntry
  std::uint64_t size = 0;  ///< of the current file
  std::string omitted;     ///< of a directory: why changes in it are not listed; or empty
  /// Permission bits before and after, of a file or directory that stays one and gets others; else both 0.
  std::uint32_t old_mode = 0, new_mode = 0;
};
/// "mode 0600 -> 0644" if the change is one of permission bits, too; else empty.
std::string modeChange(const Change& change);

struct DiffOptions {
  std::string checkpoint;         ///< "" or "begin": since the session began
  std::size_t context_lines = 3;  ///< around each change, at most 1000
  bool patch = true;              ///< fill in `patch`; otherwise only the line counts
  bool binary = false;            ///< include the content of binary files in the patch, like `git diff --binary`
  bool renames = true;            ///< report a deleted and an added file of similar content as one rename
};

/// One path of a diff, with its content changes. Unlike Change, lists every entry of a deleted directory.
struct FileDiff {
  std::string path;      ///< relative to the workspace
  std::string old_path;  ///< the previous path of a renamed file; else equal to `path`
  ChangeKind kind = ChangeKind::modified;
  std::string type, old_type;            ///< as in FileEntry; empty where the path does not exist
  std::uint32_t mode = 0, old_mode = 0;  ///< permission bits
  std::uint64_t size = 0, old_size = 0;
  bool binary = false;
  std::uint64_t added_lines = 0, removed_lines = 0;
  std::string patch;    ///< in git's format, for `git apply`; empty for what git does not track, such as directories
  std::string omitted;  ///< which part of the change is missing from the patch, and why; or empty
  bool unread = false;  ///< a directory that could not be read: what is in it is not in the diff
  [[nodiscard]] bool renamed() const { return path != old_path; }
};

/// The same of a path of a diff.
std::string modeChange(const FileDiff& diff);

struct CommitRequest {
  /// Relative to the workspace: files, or directories with every change below them. Empty: everything. Files that the
  /// host would execute later (hooks, editor tasks, start-up files, agent and CI configuration) are committed only if
  /// they are listed here by their own path.
  std::vector<std::string> paths;
  bool dry_run = false;
  /// The digest of the approved changes (CommitReport::digest of a dry run). If the changes differ by now, or one of
  /// them cannot be written, the commit fails and nothing is written.
  std::string expect;
  /// Kills the session's processes first, so that the files are consistent with each other. Ignored in a dry run.
  bool stop = false;
  /// Conflicts to resolve, by path: `ours` keeps the real file, `theirs` replaces it with the session's. A directory
  /// names every conflict in it; the longest path decides. A file that was hidden from the session is replaced only by
  /// its own path. A path without a conflict is in CommitReport::skipped.
  std::vector<std::string> ours, theirs;
  /// Conflicts to be settled by a three-way merge: text files, or directories of such, that both the session and the
  /// real workspace changed. Needs a version that both come from: what git tracked when the session began, or what this
  /// session committed before. Where the changes touch each other the conflict stays.
  std::vector<std::string> merge;
  /// What the commit replaces and deletes is not kept, and cannot be put back. Needed when all KeptData would exceed
  /// its limit.
  bool discard = false;
  /// For commits that a model starts: what is not of a known, ordinary kind is held back, too
  /// (docs/protected-files.md).
  bool ordinary_files_only = false;
  /// Directories relative to the workspace in which nothing is changed, whatever `paths` names; nor is one of them
  /// removed or replaced with a directory above it. CommitReport::skipped names what was left out.
  std::vector<std::string> excluded;
};

/// One change of a commit.
struct ManifestEntry : Change {
  std::uint32_t mode = 0;           ///< permission bits; 0 for links and deletions
  std::string sha256;               ///< of a regular file's content, 64 hexadecimal digits
  std::string target;               ///< of a link
  bool held_unless_named = false;   ///< it is only committed because the request names it
  std::string held_reason;          ///< why it is held back unless named: "editors run tasks from it"
  bool merged = false;              ///< the content is a merge of the session's and the real file's
  bool replaces_directory = false;  ///< a file or link in the place of a real directory, which goes with all it holds
  /// Identifies the state of what is replaced or deleted on the host, or the directory of what is added; or empty.
  std::string replaced;
};

struct NotCommitted {
  std::string path;
  std::string reason;
};

struct CommitReport {
  std::vector<ManifestEntry> applied;   ///< the manifest: what was written, or would be in a dry run; sorted by path
  std::vector<NotCommitted> conflicts;  ///< the real file changed since the session began; it was not touched
  std::vector<NotCommitted> held;       ///< the host would execute it later, and the request does not list it
  std::vector<NotCommitted> skipped;    ///< cannot be committed: pipes, unreadable files, caisson's own state
  std::vector<std::string> kept;        ///< conflicts resolved by `ours`: the real file stays
  std::string digest;                   ///< of the manifest, what it replaces, and the workspace's path, for `expect`
  std::uint64_t bytes = 0;              ///< of all files together
  std::uint64_t replaced_bytes = 0;     ///< of what is replaced and deleted on the host, which is kept
  /// All links and git configurations of the workspace were found. If not, it is too large, and files that the host
  /// executes because a link or a configuration leads to them may be among `applied`.
  bool searched = true;
  bool consistent = true;  ///< no process could change the files while they were read; always true in a dry run
  [[nodiscard]] bool complete() const { return conflicts.empty() && held.empty() && skipped.empty(); }
};

/// What is kept of the host's and the payloads' files below CAISSON_HOME, in bytes.
struct KeptData {
  std::uint64_t commits = 0;      ///< what commits replaced and deleted
  std::uint64_t quarantined = 0;  ///< files that runs moved out of a workspace, since the host would execute them
  std::uint64_t evidence = 0;     ///< caches that were set aside after an escape attempt
  /// A commit with which the sum would be larger needs CommitRequest::discard.
  std::uint64_t limit = 10ULL << 30;
  [[nodiscard]] std::uint64_t total() const { return commits + quarantined + evidence; }
};

/// A commit whose replaced and deleted objects are kept, so that it can be undone.
struct ReplacedByCommit {
  std::uint32_t number = 0;  ///< the first commit of the session is 1
  std::int64_t time = 0;     ///< when it was made, in seconds since 1970
  std::size_t changes = 0;   ///< of the workspace
  std::size_t objects = 0;   ///< files, links and directories that are kept
  std::uint64_t bytes = 0;   ///< what they hold
  double removed_in = 0;     ///< seconds until they are removed
  bool undone = false;       ///< it was undone
  bool interrupted = false;  ///< it could not be finished: an uncommit does that first, once the workspace is there
  std::string location;      ///< then: the directory that holds what it moved out of the workspace
};

}  // namespace caisson
