// A session's metadata, stored in meta.json. Written atomically.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/model.h"
#include "sys/file_identity.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Raised when an older caisson would misread a session, or lose data when it writes the file; a session of any other
/// format is an error. Members that an older caisson may ignore and drop need no new format.
inline constexpr int kFormat = 1;

/// policy::Policy::use of a session whose creator chose none.
inline constexpr const char* kSessionUse = "session";

/// Limits of meta.json in bytes. Nothing is written that could not be read back: an unreadable session cannot be used,
/// and its layers are unknown.
inline constexpr std::size_t kMaxMetadataBytes = std::size_t{1024} * 1024;
/// For a new session: its policy and environment, which leave room for checkpoints.
inline constexpr std::size_t kMaxNewMetadataBytes = kMaxMetadataBytes / 2;
/// For a checkpoint or an allowed host; the rest is for changes that must not fail, such as a rollback.
inline constexpr std::size_t kMaxGrownMetadataBytes = kMaxMetadataBytes - std::size_t{64} * 1024;

struct Checkpoint {
  std::string name;
  std::int64_t created = 0;
  std::vector<std::string> frozen;  ///< its layers, uppermost first
  /// Layers with the changes of a writable root, uppermost first. Unset: they are not part of it, as of automatic
  /// checkpoints, which are made while the root is mounted.
  std::optional<std::vector<std::string>> root;
};

/// A moment on both clocks, so that setting the wall clock is noticed.
struct Moment {
  std::int64_t wall_ns = 0;
  std::int64_t boot_ns = 0;  ///< since the machine's start, sleep included
  std::string boot;          ///< the boot id

  static Moment now();
  /// The last moment of which no file that is changed from now on can have the time: file times have the precision of
  /// the kernel's tick, so they lag behind the clock.
  static Moment beforeThisTick();
};
/// Waits until files that are changed get later times than `moment`, which is seldom necessary: a tick takes at most
/// 10 ms, or longer while a virtual processor does not run.
void waitForTickAfter(const Moment& moment);

/// Identifies a process: its pid may have been reused since.
struct ProcessId {
  pid_t pid = -1;
  std::uint64_t start = 0;  ///< sys::processStart
  std::string boot;         ///< the boot id

  static ProcessId of(pid_t pid);
  /// Whether this very process exists, also as a zombie; false after a reboot.
  [[nodiscard]] bool isAlive() const;
};

struct Metadata {
  std::string id;
  std::string name;
  std::string workspace;  ///< the real directory, canonical; empty: none
  /// Of the real directory, so that nothing else is used in its place (workspace_root.h).
  sys::FileIdentity workspace_identity;
  /// Of the directory that the session began on; empty if rebind() has set none since.
  sys::FileIdentity first_identity;
  Moment began;
  Moment expires;
  double ttl_seconds = 0;                ///< a request extends the session's time to this long from then
  std::string family;                    ///< whose store holds the layers
  std::vector<std::string> frozen;       ///< names of the frozen layers, uppermost first
  std::string upper;                     ///< name of the upper layer
  std::vector<std::string> root_frozen;  ///< the same for the changes of a writable root (root_layers.h)
  std::string root_upper;
  std::vector<Checkpoint> checkpoints;
  bool auto_checkpoint = false;
  bool pooled = false;                 ///< created in advance and not handed out yet
  std::optional<ProcessId> pooled_by;  ///< with `pooled`: whose pool it is in
  uid_t payload_id = 0;                ///< of a root caller's sessions: owner of its files
  policy::Policy policy;
  std::vector<std::string> granted;  ///< permitted hosts that depend on an approval
  std::optional<ProcessId> creator;  ///< the sandbox ends with this process; nothing: the session is kept

  /// Whether the real directory is the one that the session began on: another one has files that it never saw.
  [[nodiscard]] bool isFirstDirectory() const;
  /// The names of all layers that a sandbox of the session mounts.
  [[nodiscard]] std::vector<std::string> mountedLayers() const;
  /// Time until the session expires; 0 if it has expired. Uses the boot clock during the same boot, else the wall
  /// clock.
  [[nodiscard]] double secondsLeft(const Moment& now) const;
  /// How long ago the session expired; 0: it did not.
  [[nodiscard]] double secondsSinceEnd(const Moment& now) const;
  /// Sets the end to `seconds` from `now`, and the time to live that each later request renews.
  void setTtl(const Moment& now, double seconds);
};

std::string toJson(const Metadata& metadata);
/// `where`: the file's name, for errors.
Result<Metadata> metadataFromJson(std::string_view text, const std::string& where);

/// The text of meta.json, unparsed and without what extendByActivity() stored.
Result<std::string> readMetadataText(const sys::RootDir& session);
/// The name of meta.json, for errors.
std::string metadataName(const sys::RootDir& session);
/// Adds the time by which requests extended the session (extendByActivity).
void addActivity(const sys::RootDir& session, Metadata& metadata);
/// Reads meta.json, and adds the time by which requests extended the session (extendByActivity).
Result<Metadata> readMetadata(const sys::RootDir& session);
/// Writes meta.json and waits for the disk. An error if it would be longer than `limit`.
Result<void> writeMetadata(const sys::RootDir& session, const Metadata& metadata,
                           std::size_t limit = kMaxMetadataBytes);
/// Writes meta.json without waiting for the disk; call syncMetadata() soon.
Result<void> replaceMetadata(const sys::RootDir& session, const Metadata& metadata,
                             std::size_t limit = kMaxMetadataBytes);
/// The same, and faster; without syncMetadata(), meta.json may be empty after a power loss. Returns what
/// RootDir::exchangeFile() returns.
Result<sys::Fd> exchangeMetadata(const sys::RootDir& session, const Metadata& metadata);
/// Waits until meta.json, as written by replaceMetadata() or exchangeMetadata(), is on the disk.
Result<void> syncMetadata(const sys::RootDir& session);

/// Extends the session's time after a request: it ends `ttl_seconds` from now, or later. Stored beside the metadata,
/// whose lock a request does not take; readMetadata adds it. Gains below a minute, or below 5 % of `ttl_seconds` if
/// that is less, are ignored. An expired session stays expired. Returns true if it was extended.
bool extendByActivity(const sys::RootDir& session, Metadata& metadata);

/// init.json: the processes of a session's running sandbox.
struct InitRecord {
  ProcessId init;                   ///< its pid 1
  ProcessId supervisor;             ///< pid 1's parent
  std::vector<std::string> layers;  ///< mounted layers, which must not be removed meanwhile
};

/// The record of the last sandbox, which may have ended: check ProcessId::isAlive(). An error if there is none.
Result<InitRecord> readInitRecord(const sys::RootDir& session);
/// Atomic, but does not wait for the disk: the record is useless after a reboot.
Result<void> writeInitRecord(const sys::RootDir& session, const InitRecord& record);

}  // namespace caisson::session
