// A session's sandbox: its plan on this host, and the start of its pid 1.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/error.h"
#include "plan/plan.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Names in a session's directory.
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kAliveFile = "alive";
inline constexpr const char* kControlSocket = "control";
inline constexpr const char* kEndReasonFile = "ended";  ///< why the sandbox ended, if no client requested it
inline constexpr const char* kEmptyDirectory = "empty";
inline constexpr const char* kLogDirectory = "logs";
inline constexpr const char* kScratchDirectory = "scratch";  ///< size-limited directories on disk

/// Plans a session's commands. Caches the facts about the host: probing them costs more than the rest of a command.
struct Planner {
  policy::Policy policy;
  plan::HostFacts facts;

  static Result<Planner> observe(const sys::RootDir& directory, const Metadata& metadata);
  /// Uses the policy of these metadata from now on; host facts stay cached.
  Result<void> usePolicy(const sys::RootDir& directory, const Metadata& metadata);
  /// The plan for one command, or for none. Its steps build the whole sandbox; the rest applies to each command.
  [[nodiscard]] Result<plan::Plan> plan(const Metadata& metadata, const std::optional<plan::Command>& command) const;
  /// The plan that builds the sandbox, without a command.
  [[nodiscard]] Result<plan::Plan> planSandbox(const Metadata& metadata) const { return plan(metadata, std::nullopt); }
  /// The same without the steps and the layers that pid 1 is already in. Most of it is shared between commands.
  Result<plan::Plan> planCommand(const Metadata& metadata, const plan::Command& command);

 private:
  std::optional<plan::Plan> common_;
  bool common_is_interactive_ = false;
};

/// Whether a directory's file system has the features of an overlay's upper layer; otherwise operations would fail much
/// later. `path`: for the error, which names the missing feature. An O_PATH descriptor does not support the attribute
/// check.
Result<void> checkFeatures(const std::string& path, int directory);

/// Whether pid 1 lives: it holds a lock that the kernel releases at its exit.
bool isAlive(const sys::RootDir& directory);

/// Whether a sandbox runs, or its supervisor is still recording its end.
bool isSupervised(const sys::RootDir& directory);

/// A directory inside a running sandbox, by its path there.
Result<sys::Fd> openInSandbox(pid_t init, const std::string& path);

/// Kills the supervisor and pid 1, and with them everything in the sandbox. Not an error if there are none. For a
/// supervisor that does not respond; otherwise send it a request (connection.h).
Result<void> killSandbox(const sys::RootDir& directory);

}  // namespace caisson::session
