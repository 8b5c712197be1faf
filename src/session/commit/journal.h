// What a commit is about to write, on disk before the first file of the real workspace changes.
//
// After a crash the journal says for every file whether it is old or new, and where the new one lies; the next use of
// the session finishes the commit (recover.h). In the session's directory:
//
//   commit.staging   exists while files are staged: the name of the staging directory in the workspace, or empty
//   commit.files/    the staging directory, when it lies here
//   commit.journal   the transaction: from here on it is finished, not undone
//   commit.placed    each object that was put in place, as it was left (committed.h): it is written at once, so that
//   what
//                    the host changes after a kill is not taken for the work of the commit
//   commit.undoing   the number of the commit whose uncommit is under way; its files are in the directory of what that
//                    commit kept (kept_commits.h)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "session/codec.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// A file of the real workspace as it was when the commit was planned.
struct HostIdentity {
  sys::FileType type = sys::FileType::unknown;
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  std::uint32_t mode = 0;

  static HostIdentity of(const sys::FileInfo& info);
  /// Whether `now` is the same file with the same content and permissions; of a directory, only whether it is the same.
  /// `renamed`: ignore the change time, which a rename sets.
  [[nodiscard]] bool matches(const sys::FileInfo& now, bool renamed = false) const;
  /// The state of the object as text, which does not depend on device numbers: these change at a reboot.
  [[nodiscard]] std::string text() const;
};

enum class ActionKind : std::uint8_t { remove, directory, file, link };

/// One path of a transaction.
struct Action {
  ActionKind kind = ActionKind::file;
  std::string path;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::string sha256;                   ///< of a file, 64 digits
  std::string target;                   ///< of a link
  std::uint64_t replaced_bytes = 0;     ///< in what the real workspace had
  std::optional<HostIdentity> before;   ///< what the real workspace had when the commit was planned; nothing: no object
  std::uint64_t device = 0, inode = 0;  ///< of the staged object; 0 where there is none
  std::int64_t modified_ns = 0;
  bool may_lead_out = false;  ///< a link that the request named: it may lead out of the workspace
  bool merged = false;        ///< a file: the result of a merge, which the session itself does not have
  /// What it replaces may have been hidden from the session: it is never moved to where a sandbox could see it.
  bool replaces_hidden = false;
  /// Of a directory that is there already: its owner, access lists and attributes when this was planned
  /// (attributesDigest()).
  std::string attributes;
  bool restored = false;  ///< an uncommit puts it back: with its attributes, and a directory with everything in it

  /// Whether `now` is the object that was staged, by its inode. isUnchanged(): its content has not changed since.
  [[nodiscard]] bool isStaged(const sys::FileInfo& now) const {
    return inode != 0 && now.inode == inode && now.device == device;
  }
  [[nodiscard]] bool isUnchanged(const sys::FileInfo& now) const {
    return kind == ActionKind::directory || (now.size == size && now.modified_ns == modified_ns);
  }
};

/// A directory in which a commit makes or removes names.
struct KnownDirectory {
  std::string path;
  std::uint64_t device = 0, inode = 0;  ///< when the commit was planned: the host may put another one there meanwhile
  std::uint32_t mode = 0;
  std::string others;  ///< a digest of the names in it that the commit does not touch (directory_watch.h)
};

struct Transaction {
  std::string id;             ///< part of the names of temporary files
  std::string workspace;      ///< the identity of the directory, as text (sys::FileIdentity)
  std::string digest;         ///< manifestDigest()
  std::int64_t since_ns = 0;  ///< later changes of the real workspace are conflicts
  std::vector<Action> actions;
  /// Where only this session made or removed names since the session began.
  std::vector<KnownDirectory> known_directories;
  std::string kept;      ///< where what it replaces is kept (kept_commits.h); empty: nowhere
  bool undoing = false;  ///< an uncommit; the journal is in the directory of what the commit kept
};

inline constexpr const char* kStagingName = "commit.staging";
inline constexpr const char* kStagingDirectory = "commit.files";
inline constexpr const char* kJournal = "commit.journal";
inline constexpr const char* kPlaced = "commit.placed";
inline constexpr const char* kUndoing = "commit.undoing";

Result<void> writeJournal(const sys::RootDir& session, const Transaction& transaction);
/// Nothing when there is no journal. One that is damaged or forged (seal.h) is renamed, and reported as an error: it
/// would make the host write what it names. `before_renaming` saves what it was to finish; if that fails, the journal
/// stays.
Result<std::optional<Transaction>> readJournal(const sys::RootDir& session,
                                               const std::function<Result<void>()>& before_renaming = {});

template <class A, class T>
  requires(std::is_same_v<std::remove_const_t<T>, HostIdentity>)
void fields(A& archive, T& v) {
  auto& [type, device, inode, size, modified, changed, mode] = v;
  archive(type, device, inode, size, modified, changed, mode);
}
template <class A, class T>
  requires(std::is_same_v<std::remove_const_t<T>, Action>)
void fields(A& archive, T& v) {
  auto& [kind, path, mode, size, sha256, target, replaced, before, device, inode, modified, may_lead_out, merged,
         hidden, attributes, restored] = v;
  archive(kind, path, mode, size, sha256, target, replaced, before, device, inode, modified, may_lead_out, merged,
          hidden, attributes, restored);
}
template <class A, class T>
  requires(std::is_same_v<std::remove_const_t<T>, KnownDirectory>)
void fields(A& archive, T& v) {
  auto& [path, device, inode, mode, others] = v;
  archive(path, device, inode, mode, others);
}
template <class A, class T>
  requires(std::is_same_v<std::remove_const_t<T>, Transaction>)
void fields(A& archive, T& v) {
  auto& [id, workspace, digest, since, actions, known, kept, undoing] = v;
  archive(id, workspace, digest, since, actions, known, kept, undoing);
}

}  // namespace caisson::session
