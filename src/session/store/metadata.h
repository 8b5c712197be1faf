// What a session is, as it stands in meta.json. Written atomically: a reader sees it whole, before or after.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/model.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Raised when an older caisson would misread a session; one of a newer format is refused, never guessed at.
inline constexpr int kFormat = 1;

struct Checkpoint {
  std::string name;
  std::int64_t created = 0;
  std::vector<std::string> frozen;  ///< its layers, uppermost first
};

/// A moment on both clocks, so that setting the wall clock is noticed.
struct Moment {
  std::int64_t wall_ns = 0;
  std::int64_t boot_ns = 0;  ///< since the machine's start, sleep included
  std::string boot;          ///< which start that was

  static Moment now();
};

/// A process that can be recognised again: its number may have been given to another one since.
struct ProcessId {
  pid_t pid = -1;
  std::uint64_t start = 0;  ///< sys::processStart
  std::string boot;         ///< which start of the machine

  static ProcessId of(pid_t pid);
  [[nodiscard]] bool isAlive() const;
};

struct Metadata {
  int format = kFormat;
  std::string id;
  std::string name;
  std::string workspace;  ///< the real directory, canonical; empty: it began empty
  Moment began;
  Moment expires;
  double ttl_seconds = 0;           ///< by how much a request extends the session's time
  std::string family;               ///< whose store holds the layers
  std::vector<std::string> frozen;  ///< uppermost first
  std::string upper;
  std::vector<Checkpoint> checkpoints;
  bool auto_checkpoint = false;
  bool pooled = false;   ///< made ahead and not handed out yet
  uid_t payload_id = 0;  ///< of a root caller's sessions: what its files belong to
  policy::Policy policy;
  std::vector<std::string> granted;  ///< of the permitted hosts: those that stand only as long as an approval does
  std::optional<ProcessId> creator;  ///< its sandbox ends with this process; nothing: the session is kept

  [[nodiscard]] double secondsLeft(const Moment& now) const;
  /// How long ago the session expired; 0: it did not.
  [[nodiscard]] double secondsSinceEnd(const Moment& now) const;
  /// From `now` on the session has this much time, and each request extends it by as much.
  void setTtl(const Moment& now, double seconds);
};

std::string toJson(const Metadata& metadata);
Result<Metadata> metadataFromJson(std::string_view text, const std::string& where);

Result<std::string> readMetadataText(const sys::RootDir& session);
Result<Metadata> readMetadata(const sys::RootDir& session);
Result<void> writeMetadata(const sys::RootDir& session, const Metadata& metadata);
/// Without waiting for the disk; somebody calls syncMetadata soon.
Result<void> replaceMetadata(const sys::RootDir& session, const Metadata& metadata);
Result<void> syncMetadata(const sys::RootDir& session);

/// Extends the session's time after a request: it ends `ttl_seconds` from now, or later. Kept beside the metadata,
/// whose lock a request does not take; readMetadata adds it. Nothing is written for a gain below a minute or 5 %. An
/// expired session stays expired.
/// True: it was extended.
bool extendByActivity(const sys::RootDir& session, Metadata& metadata);

/// The processes of a session's running sandbox.
struct InitRecord {
  ProcessId init;                   ///< its pid 1
  ProcessId supervisor;             ///< pid 1's parent
  std::vector<std::string> layers;  ///< that are mounted: they must not be removed meanwhile
};

Result<InitRecord> readInitRecord(const sys::RootDir& session);
Result<void> writeInitRecord(const sys::RootDir& session, const InitRecord& record);

}  // namespace caisson::session
