// All sessions of a user, behind the public SessionStore.
#pragma once

#include <set>

#include "caisson/session.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

class Store {
 public:
  explicit Store(SessionPaths paths) : paths_(std::move(paths)) {}

  [[nodiscard]] const SessionPaths& paths() const { return paths_; }

  /// A random id that cannot be guessed.
  static std::string newId();

  /// A session's directory and metadata, by id or name.
  struct Found {
    sys::RootDir directory;
    Metadata metadata;
  };
  [[nodiscard]] Result<Found> find(std::string_view call, std::string_view id_or_name) const;
  [[nodiscard]] Result<std::vector<SessionInfo>> list() const;

  /// Creates the session's files under a hidden name, then renames them. `pooled`: for a pool.
  Result<Found> make(const SessionOptions& options, bool pooled = false);

  /// The same for existing metadata.
  Result<Found> add(Metadata metadata);

  /// Binds a name to this session; an error if it belongs to another one. "" is none.
  Result<void> claimName(const std::string& name, const std::string& id);

  /// Ends and removes a session, even if its files are damaged.
  Result<void> destroy(const std::string& id);

  /// Whether the workspace differs from the real one. The check is bounded; beyond the bound it returns true.
  [[nodiscard]] bool hasUncommittedChanges(const Metadata& metadata) const;

  /// Removes expired sessions, and partly created or removed ones of dead processes.
  Result<std::vector<std::string>> clean(bool all);
  /// The same from time to time, for frequent calls.
  void cleanSometimes();

  /// Moves layers that no session of the family uses to the trash; the next clean() removes them.
  void dropUnusedLayers(const std::string& family);
  /// Removes the trash.
  void emptyTrash();

  /// Also takes the beginning of an id, if only one session has it.
  [[nodiscard]] Result<std::string> idOf(std::string_view call, std::string_view id_or_name) const;

 private:
  [[nodiscard]] Result<std::string> idWithPrefix(std::string_view call, std::string_view prefix) const;
  /// Whether an expired session still holds uncommitted changes and is within its grace period.
  [[nodiscard]] bool isKept(const sys::RootDir& directory, const Metadata& metadata) const;
  /// `only_expired`: not if the session was renewed meanwhile.
  Result<void> destroy(const std::string& id, bool only_expired);
  Result<void> claimNameLocked(const std::string& name, const std::string& id);
  Result<void> removeStore(const std::string& family, const std::string& id);
  void dropUnusedLayersLocked(const std::string& family);

  SessionPaths paths_;
};

/// Whether the directory is still the session with this id, and was not destroyed meanwhile.
bool isCurrent(const SessionPaths& paths, const std::string& id, const sys::RootDir& directory);

/// Requests a rollback that could not be done because the session was locked: every later use does it first. `upper`:
/// the layer to discard.
Result<void> requestRollback(const sys::RootDir& session, const std::string& upper);
/// Does a requested rollback; the caller holds the session's lock. Returns the name of the checkpoint that keeps the
/// discarded changes, or empty.
Result<std::string> carryOutRollback(const sys::RootDir& session, Metadata& metadata);
/// Discards the upper layer and keeps it as a checkpoint, whose name is returned; the caller holds the lock.
Result<std::string> discardUpper(const sys::RootDir& session, Metadata& metadata);

/// Discards what commands left in the session's /tmp and home, as far as that is on disk; the caller holds the lock.
Result<void> discardScratch(const sys::RootDir& session);

/// Clears the mark that the session expired with uncommitted changes: they are about to change.
void forgetKept(const sys::RootDir& session);

/// Disk space that a session holds back, so that it can be restored and destroyed when the disk is full.
void makeReserve(const sys::RootDir& session);
void releaseReserve(const sys::RootDir& session);

/// A name for a layer that no other layer of the family has.
std::string newLayerName();

}  // namespace caisson::session
