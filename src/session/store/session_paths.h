// The files of sessions, and their locks.
//
//   CAISSON_HOME/sessions/ID/    meta.json   what the session is (atomic)
//                                family      whose store holds its layers, also if meta.json is unreadable
//                                lock        held while its structure changes
//                                alive       held by pid 1 of its sandbox, for as long as that lives
//                                control     the supervisor's socket
//                                egress      the egress process's socket, with network mode proxy
//                                init.json   pid 1, supervisor and mounted layers of the running sandbox
//                                ended       why the last sandbox died or had to be killed
//                                activity    when a request last extended the session's time
//                                kept        it expired with uncommitted changes
//                                rollback    the layer to discard before the next use (rollback.h)
//                                warnings    weaker protection of the sandbox that was started last
//                                tier/       files of a session in the landlock tier (tier/tier_files.h)
//                                directories the real directories when it began (commit/directory_baseline.h)
//                                reserve     disk space for a restore or rollback on a full disk
//                                ports/      open ports, one locked file each
//                                logs/       background commands
//                                scratch/    size-limited directories on disk, such as /tmp
//                                commit.*    a commit that is under way or was interrupted (commit/journal.h)
//                                in-memory   its layers are in memory (below)
//   CAISSON_HOME/replaced/ID/    what its commits replaced in the real workspace (commit/kept_commits.h)
//   CAISSON_HOME/stores/FAMILY.roots/  layers with the changes of their writable root (layers/root_layers.h)
//   CAISSON_HOME/stores/FAMILY/  the layers of a session and of all its forks; in sys::memoryStores() if CAISSON_HOME
//                                lies on an overlay, such as a container's root, which cannot hold them
//
// All directories are private (0700). Locks are flock(2): the kernel releases them when their holder dies, so a killed
// process blocks nothing.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Whether the text has the form of a session id: "cs-" and 32 lower-case hexadecimal digits.
bool isId(std::string_view text);
/// Whether it has the form of the beginning of an id, "cs-" and at least 4 such digits, or of a whole one.
bool isIdPrefix(std::string_view text);
/// An error unless `name` is valid for a session: 1 to 64 letters, digits, `-`, `_`, `.`, not beginning with `.` or
/// `-`, and not a whole id. `call`: for the error.
Result<void> checkName(std::string_view call, std::string_view name);

class SessionPaths {
 public:
  /// Opens the directories of sessions and stores, and creates missing ones; an error if others than this user have
  /// access. `program`: the caisson program, which runs supervisors and workers; empty: the installed one.
  static Result<SessionPaths> open(std::string program);

  [[nodiscard]] const sys::RootDir& sessions() const { return sessions_; }
  [[nodiscard]] const sys::RootDir& stores() const { return stores_; }
  /// Opens the directory of what commits replaced (commit/kept_commits.h), and creates it if missing.
  [[nodiscard]] Result<sys::RootDir> replaced() const;
  /// Why the layers are in memory and not below home(), and so are lost with the machine or container; empty: they are
  /// on disk.
  [[nodiscard]] const std::string& whyInMemory() const { return why_in_memory_; }
  /// Removes the directory of layers in memory if no session uses it; the next open() makes it again. A session that
  /// is created meanwhile fails.
  void removeEmptyMemoryStores() const;
  [[nodiscard]] const std::string& home() const { return home_; }
  [[nodiscard]] const std::string& program() const { return program_; }

  /// Takes the lock that is held while sessions are created, named or removed; the result holds it. Fails if another
  /// process does not release it in time.
  [[nodiscard]] Result<sys::Fd> lockAll() const;

 private:
  SessionPaths(std::string home, std::string program, sys::RootDir sessions, sys::RootDir stores)
      : home_(std::move(home)),
        program_(std::move(program)),
        sessions_(std::move(sessions)),
        stores_(std::move(stores)) {}

  std::string home_, program_, why_in_memory_;
  sys::RootDir sessions_, stores_;
};

/// Takes an exclusive lock on a file of a session's directory, which the result holds; creates the file if needed. With
/// `wait` false, EWOULDBLOCK if another process holds it.
Result<sys::Fd> lockFile(const sys::RootDir& directory, const char* name, bool wait);
/// The same, but EBUSY if another process still holds it after `timeout`.
Result<sys::Fd> lockFileWithin(const sys::RootDir& directory, const char* name, std::chrono::milliseconds timeout);
/// Whether another process holds that lock. Takes a shared one for a moment, so that several processes can ask at the
/// same time. To take a lock that others ask about, wait for kUntilAskersAreGone.
bool isLocked(const sys::RootDir& directory, const char* name);
inline constexpr std::chrono::milliseconds kUntilAskersAreGone{1'000};

}  // namespace caisson::session
