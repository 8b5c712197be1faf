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

  /// An id that nobody can guess.
  static std::string newId();

  /// A session's directory and metadata, by id or name.
  struct Found {
    sys::RootDir directory;
    Metadata metadata;
  };
  [[nodiscard]] Result<Found> find(std::string_view call, std::string_view id_or_name) const;
  [[nodiscard]] Result<std::vector<SessionInfo>> list() const;

  /// Makes the session's files under a name that nobody sees, then shows them. `pooled`: for nobody yet.
  Result<Found> make(const SessionOptions& options, bool pooled = false);

  /// The same for a session whose metadata are made already.
  Result<Found> add(Metadata metadata);

  /// Makes a name mean this session; an error when it means another one. "" is none.
  Result<void> claimName(const std::string& name, const std::string& id);

  /// Ends and removes a session, whatever state its files are in.
  Result<void> destroy(const std::string& id);

  /// Whether the workspace differs from the real one. The look is bounded; where that does not suffice: yes.
  [[nodiscard]] bool hasUncommittedChanges(const Metadata& metadata) const;

  /// Removes sessions whose time is over and what was half made or half removed when its maker died.
  Result<std::vector<std::string>> clean(bool all);
  /// The same now and then, for calls that should not pay for it every time.
  void cleanSometimes();

  /// Takes layers away that no session of the family uses any more; what they hold is removed by the next clean().
  void dropUnusedLayers(const std::string& family);
  /// Removes what was taken away so.
  void emptyTrash();

  [[nodiscard]] Result<std::string> idOf(std::string_view call, std::string_view id_or_name) const;

 private:
  /// Whether an expired session still holds uncommitted changes and is within its grace period.
  [[nodiscard]] bool isKept(const sys::RootDir& directory, const Metadata& metadata) const;
  /// `only_expired`: not if the session was renewed since the caller looked.
  Result<void> destroy(const std::string& id, bool only_expired);
  Result<void> claimNameLocked(const std::string& name, const std::string& id);
  Result<void> removeStore(const std::string& family, const std::string& id);
  void dropUnusedLayersLocked(const std::string& family);

  SessionPaths paths_;
};

/// Whether the directory is still the one that the store knows by this id, and not one that was destroyed meanwhile.
bool isCurrent(const SessionPaths& paths, const std::string& id, const sys::RootDir& directory);

/// A rollback that could not be carried out because the session was locked: every later use does it first.
/// `upper`: the layer to discard.
Result<void> requestRollback(const sys::RootDir& session, const std::string& upper);
/// Carries it out, if one is requested; the caller holds the session's lock. The name of the checkpoint that keeps what
/// was discarded, or empty.
Result<std::string> carryOutRollback(const sys::RootDir& session, Metadata& metadata);
/// Discards the upper layer and keeps it as a checkpoint, whose name is returned; the caller holds the lock.
Result<std::string> discardUpper(const sys::RootDir& session, Metadata& metadata);

/// Forgets that the session was found to hold uncommitted changes when it expired: they are about to change.
void forgetKept(const sys::RootDir& session);

/// Disk space that a session holds back, so that it can be restored and destroyed when the disk is full.
void makeReserve(const sys::RootDir& session);
void releaseReserve(const sys::RootDir& session);

/// A name for a layer that no other layer of the family has.
std::string newLayerName();

}  // namespace caisson::session
