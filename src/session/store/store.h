// All sessions of a user, behind the public SessionStore.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>

#include "caisson/session.h"
#include "session/store/later_queue.h"
#include "session/store/metadata_cache.h"
#include "session/store/removal.h"
#include "session/store/session_paths.h"
#include "session/store/write_room.h"

namespace caisson::session {

class Store {
 public:
  explicit Store(SessionPaths paths, std::chrono::milliseconds lock_timeout = std::chrono::minutes(10))
      : paths_(std::move(paths)),
        lock_timeout_(lock_timeout),
        cache_(std::make_unique<MetadataCache>()),
        later_(std::make_unique<LaterQueue>()) {}

  [[nodiscard]] const SessionPaths& paths() const { return paths_; }
  /// How long an operation waits for the lock of a session; then EBUSY.
  [[nodiscard]] std::chrono::milliseconds lockTimeout() const { return lock_timeout_; }
  /// The current metadata of a session.
  [[nodiscard]] Result<Metadata> readMetadata(const sys::RootDir& session) const { return cache_->read(session); }
  /// Replaces the metadata after setTtl(); call makeDurable() soon. Returns what RootDir::exchangeFile() returns.
  [[nodiscard]] Result<sys::Fd> exchangeMetadata(const sys::RootDir& session, const Metadata& metadata) const {
    return cache_->exchange(session, metadata);
  }

  /// The disk space for writes to a session, shared by its handles in this process.
  [[nodiscard]] std::shared_ptr<WriteRoom> writeRoom(const std::string& id) const { return rooms_->of(id); }

  /// SessionStore::onNotice().
  void onNotice(std::function<void(const std::string&)> handler) { on_notice_ = std::move(handler); }
  /// False: there is no handler.
  [[nodiscard]] bool notify(const std::string& notice) const {
    if (on_notice_) on_notice_(notice);
    return on_notice_ != nullptr;
  }

  /// A random id that cannot be guessed.
  static std::string newId();

  /// A session's directory and metadata, by id or name.
  struct Found {
    sys::RootDir directory;
    Metadata metadata;
  };
  /// Finds a session as idOf() does. An error if there is none, its metadata is damaged, or it has expired and is not
  /// kept for its grace period. `call`: for errors.
  [[nodiscard]] Result<Found> find(std::string_view call, std::string_view id_or_name) const;
  /// All sessions except pooled ones, oldest first; damaged ones with a `problem`.
  [[nodiscard]] Result<std::vector<SessionInfo>> list() const;

  /// Creates a session, without a sandbox. `pooled`: for a pool; list() leaves it out until it is handed out.
  Result<Found> make(const SessionOptions& options, bool pooled = false);

  /// Creates the files of a session with these metadata and claims its name: under a hidden name first, so that a crash
  /// leaves no partial session. Waits for the disk unless `durable` is false; then call makeDurable().
  Result<Found> add(Metadata metadata, bool durable = true);
  /// Waits until the metadata and the name of a session are on the disk.
  void makeDurable(const std::string& id, const std::string& name) const;
  /// makeDurable() a moment later, in a thread. Waits for the disk here if too many sessions are waiting already.
  void makeDurableLater(const std::string& id, const std::string& name);
  /// Completes a session that a pool handed out, a moment later in the same thread: records its merge bases, makes it
  /// durable and closes `replaced`, its metadata file until then. Files that change meanwhile get no merge base.
  void completeLater(const Metadata& metadata, sys::Fd replaced);

  /// Binds a name to the session, without waiting for the disk; an error if a session of that name exists. Nothing for
  /// "".
  Result<void> claimName(const std::string& name, const std::string& id);

  /// Ends and removes a session, even if its files are damaged. Waits for the session's lock, and first finishes a
  /// commit that was interrupted.
  Result<void> destroy(const std::string& id);

  /// Whether the workspace differs from the real one. The check is bounded; beyond the bound it returns true, also if
  /// the real workspace is gone or cannot be read.
  [[nodiscard]] bool hasUncommittedChanges(const Metadata& metadata) const;

  /// Removes expired sessions, unless they are kept for their grace period, and partly created or removed ones of dead
  /// processes; damaged ones a week after their last change. Also removes layers of no session. `all`: removes every
  /// session. Returns the ids of the removed sessions, or the first error after trying all of them.
  Result<std::vector<std::string>> clean(bool all);
  /// clean(false), if the last one is more than a minute ago.
  void cleanSometimes();

  /// Moves layers that no session of the family uses to the trash; the next clean() removes them.
  void dropUnusedLayers(const std::string& family);
  /// Removes the trash. `join`: also what another process is removing now, so that nothing is left on return.
  void emptyTrash(bool join = false);

  /// The id of a session, by id, name or the beginning of an id that only one session has. A whole id is not checked
  /// for existence.
  [[nodiscard]] Result<std::string> idOf(std::string_view call, std::string_view id_or_name) const;

 private:
  /// The id of the only session whose id begins with `prefix`; an error if there is none or more than one.
  [[nodiscard]] Result<std::string> idWithPrefix(std::string_view call, std::string_view prefix) const;
  /// For an expired session: whether it holds uncommitted changes and is within its grace period; false for pooled
  /// ones. Remembers a yes in a file, which forgetKept() removes.
  [[nodiscard]] bool isKept(const sys::RootDir& directory, const Metadata& metadata) const;
  /// `only_expired`: an error if the session was renewed meanwhile.
  Result<void> destroy(const std::string& id, bool only_expired);
  /// Before a session is removed: finishes a commit that was interrupted, or sets it aside, since its files may be the
  /// only copies of what the real workspace had. `only_expired`: an error instead of setting it aside.
  Result<void> finishCommitOf(const std::string& id, const sys::RootDir& directory, bool only_expired);
  void removeStaleNames();
  // The caller of these three holds the lock of all sessions.
  /// Gives the name to a session; an error if another one has it. Nothing for an empty name.
  Result<void> claimNameLocked(const std::string& name, const std::string& id, bool durable);
  /// A store in the trash, which its Removal protects from other removers.
  struct Retired {
    std::string name;
    Removal removal;
  };
  /// Moves the store of a family to the trash, or if sessions other than `id` use it only the layers that none of them
  /// uses. Returns the stores for removeRetired().
  Result<std::vector<Retired>> retireStore(const std::string& family, const std::string& id);
  /// Moves the layers that no session, checkpoint or running sandbox of the family uses to the trash. Does nothing if
  /// the metadata of a session of the family, or of an unknown one, cannot be read.
  void dropUnusedLayersLocked(const std::string& family);
  // The caller of these two must not hold that lock: both remove trees of payloads, which takes long.
  /// Removes the files of a session that was renamed to kGone and its id, and its stores.
  Result<void> removeRetired(const std::string& id, const std::vector<Retired>& retired);
  /// Removes what a dead process left of a session: `name` begins with kNew or kGone. Nothing if a live process is
  /// removing it, unless `join`. An error only if the lock of all sessions cannot be had; the next clean-up tries
  /// again.
  Result<void> removeLeftover(const std::string& name, bool join);

  SessionPaths paths_;
  std::chrono::milliseconds lock_timeout_;
  std::function<void(const std::string&)> on_notice_;
  std::unique_ptr<MetadataCache> cache_;
  std::unique_ptr<WriteRooms> rooms_ = std::make_unique<WriteRooms>();
  std::unique_ptr<LaterQueue> later_;  ///< last: its thread uses the others
};

/// Whether the directory is still the session with this id, and was not destroyed meanwhile.
bool isCurrent(const SessionPaths& paths, const std::string& id, const sys::RootDir& directory);

/// Clears the mark that the session expired with uncommitted changes: they are about to change.
void forgetKept(const sys::RootDir& session);

/// Creates a file that holds back disk space, so that the session can be restored and destroyed when the disk is full.
void makeReserve(const sys::RootDir& session);
/// Removes that file.
void releaseReserve(const sys::RootDir& session);

}  // namespace caisson::session
