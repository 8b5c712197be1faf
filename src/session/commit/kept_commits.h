// What commits replaced and deleted in the real workspace, kept for the grace period so that it can be put back.
//
//   CAISSON_HOME/replaced/ID/N/   the N-th commit of session ID; stays when the session is destroyed
//     objects/   what the commit replaced or deleted, named by the number of its action
//     record     the transaction and which of its actions were done; written when the commit is complete
//     bytes      the size of the objects; until the commit is complete, what it may become
//     committed  what the commit left in the workspace (committed.h)
//     commit.*   an uncommit that is under way or was interrupted (journal.h)
//     original.N  of a directory that was copied: what the objects in it were before that
//     partial    an uncommit left conflicts: the next one continues
//     restored   then: the paths that are done, each with a NUL
//     undone     the commit was undone
//     workspace  with commit.*: the commit itself was interrupted (set_aside.h)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "caisson/session.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/kept_copy.h"
#include "session/store/session_paths.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// One commit, when it is complete.
struct CommitRecord {
  std::string workspace;  ///< on the host
  std::int64_t time = 0;  ///< in seconds, wall clock
  std::uint64_t bytes = 0;
  Transaction transaction;
  std::vector<std::uint8_t> done;  ///< by action: kNotDone or kDone
};
inline constexpr std::uint8_t kNotDone = 0, kDone = 1;

/// Where one commit keeps what it replaces.
class KeptCommit {
 public:
  /// Makes the directory of the next commit of a session, which counts as `bytes` until it is complete.
  static Result<KeptCommit> create(const SessionPaths& paths, const std::string& session, std::uint64_t bytes);
  /// `name`: "ID/N", as name() returned it. make(): like create().
  static Result<KeptCommit> make(const SessionPaths& paths, const std::string& name, std::uint64_t bytes);
  static Result<KeptCommit> open(const SessionPaths& paths, const std::string& name);

  /// The newest one of a session, if its commit was begun and is neither complete nor set aside (set_aside.h).
  static Result<KeptCommit> openUnfinished(const SessionPaths& paths, const std::string& session);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const sys::RootDir& directory() const { return directory_; }
  [[nodiscard]] int objects() const { return objects_.get(); }

  /// Whether nothing is kept.
  [[nodiscard]] bool isEmpty() const;
  /// Removes the directory if nothing is kept in it: its commit was not made.
  void removeIfEmpty(const SessionPaths& paths) const;
  /// Whether the object of an action is kept already.
  [[nodiscard]] bool has(std::size_t action) const;
  /// Moves `name` in `directory` here, or copies it where a rename cannot work; then the original stays, for
  /// removeCopied() with `files`.
  Result<void> take(std::size_t action, int directory, const std::string& name, const std::string& path,
                    CopiedFiles& files) const;
  /// What was below a directory before it was copied here, by the path in it, which begins with `/`; empty if it was
  /// moved.
  [[nodiscard]] std::map<std::string, HostIdentity> originals(std::size_t action) const;
  /// Copies it, before it is destroyed in its place.
  Result<void> copy(std::size_t action, int directory, const std::string& name, const std::string& path,
                    CopiedFiles* files = nullptr) const;
  /// Removes what is kept of an action that was not carried out.
  void drop(std::size_t action) const;

  /// Completes the commit: from now on it is listed, and can be undone. Does not wait for the
  /// disk.
  Result<void> complete(const CommitRecord& record, Committed& left) const;
  /// Nothing if the commit is not complete.
  [[nodiscard]] Result<std::optional<CommitRecord>> record() const;
  [[nodiscard]] bool isUndone() const;

 private:
  KeptCommit(std::string name, sys::RootDir directory, sys::Fd objects)
      : name_(std::move(name)), directory_(std::move(directory)), objects_(std::move(objects)) {}

  std::string name_;
  sys::RootDir directory_;
  sys::Fd objects_;
};

/// Locks a directory. Waits 5 s at most.
Result<sys::Fd> lockDirectory(const sys::RootDir& directory, std::string_view hint);
/// Locks what is kept of a session, so that one process at a time undoes a commit or finishes that: a session that was
/// destroyed has no lock any more. An empty descriptor if nothing is kept.
Result<sys::Fd> lockKept(const SessionPaths& paths, const std::string& session);

// `directory`: KeptCommit::directory().
/// Marks a commit as undone.
Result<void> markUndone(const sys::RootDir& directory);
/// Before an uncommit: whether it leaves conflicts, so that the commit is not undone in full.
Result<void> markPartial(const sys::RootDir& directory, bool partial);
bool isPartial(const sys::RootDir& directory);
/// The paths that an uncommit with conflicts has restored.
Result<std::set<std::string>> restoredPaths(const sys::RootDir& directory);
Result<void> addRestored(const sys::RootDir& directory, const std::vector<std::string>& paths);
/// The complete commits of a session, and those that were set aside, oldest first.
Result<std::vector<ReplacedByCommit>> listKept(const SessionPaths& paths, const std::string& session);
/// What is kept below CAISSON_HOME of all sessions and runs. One bound covers all of it.
KeptData keptData(const SessionPaths& paths);
/// Removes what is older than the grace period.
void removeExpiredKept(const SessionPaths& paths);

template <class A, class T>
  requires(std::is_same_v<std::remove_const_t<T>, CommitRecord>)
void fields(A& archive, T& v) {
  auto& [workspace, time, bytes, transaction, done] = v;
  archive(workspace, time, bytes, transaction, done);
}

}  // namespace caisson::session
