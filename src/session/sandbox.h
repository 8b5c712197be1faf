// A session's sandbox: its plan on this host, whether it runs, and the kill of one whose supervisor does not respond.
#pragma once

#include <sys/types.h>

#include <chrono>
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
inline constexpr const char* kEndedByEscape = "a process tried to escape";
inline constexpr const char* kEndReasonFile = "ended";  ///< why the sandbox died or was killed unexpectedly
inline constexpr const char* kEmptyDirectory = "empty";
inline constexpr const char* kLogDirectory = "logs";
inline constexpr const char* kScratchDirectory = "scratch";  ///< size-limited directories on disk

/// Plans a session's commands. Caches the facts about the host: probing them costs more than the rest of a command.
struct Planner {
  policy::Policy policy;
  plan::HostFacts facts;

  /// Probes the host for the session's policy. `directory`: of the session.
  static Result<Planner> observe(const sys::RootDir& directory, const Metadata& metadata);
  /// Uses the policy of these metadata from now on; host facts stay cached.
  Result<void> usePolicy(const sys::RootDir& directory, const Metadata& metadata);
  /// The whole plan, with or without a command; an error for the host's network or without an overlay. planCommand()
  /// removes what is done once for the sandbox: the steps and the Landlock rules.
  [[nodiscard]] Result<plan::Plan> plan(const Metadata& metadata, const std::optional<plan::Command>& command) const;
  /// The plan that builds the sandbox, without a command.
  [[nodiscard]] Result<plan::Plan> planSandbox(const Metadata& metadata) const { return plan(metadata, std::nullopt); }
  /// The plan of a command in a running sandbox: without the steps that built it and the Landlock rules that pid 1 has
  /// entered. Cached, except for the command and its environment.
  Result<plan::Plan> planCommand(const Metadata& metadata, const plan::Command& command);

 private:
  std::optional<plan::Plan> common_;  ///< of planCommand()
  bool common_is_interactive_ = false;
};

/// An error, which names the missing feature, if a directory's file system cannot hold an overlay's upper layer;
/// without this check operations would fail much later. `path`: for the error. `directory` must not be opened with
/// O_PATH.
Result<void> checkFeatures(const std::string& path, int directory);

/// Whether pid 1 lives: it holds a lock that the kernel releases at its exit.
bool isAlive(const sys::RootDir& directory);
/// The same for a session in the landlock tier: whether a command runs. Commands share the lock, so that asking takes
/// it exclusively for a moment; `patience` is for others that ask.
bool isInUse(const sys::RootDir& directory, std::chrono::milliseconds patience = std::chrono::milliseconds(5));

/// Whether pid 1 lives, or the supervisor of a sandbox that ended does and may still write the ends of its commands.
bool isSupervised(const sys::RootDir& directory);

/// Opens a directory inside a running sandbox by its path there, with O_PATH. `init`: the pid of its pid 1 on the host.
Result<sys::Fd> openInSandbox(pid_t init, const std::string& path);

/// Kills the supervisor and pid 1, and with them everything in the sandbox. Not an error if neither runs. For a
/// supervisor that does not respond or was killed; otherwise use endSandbox() (connection.h). Waits for their end; an
/// error if one survives SIGKILL for ten seconds.
Result<void> killSandbox(const sys::RootDir& directory);

}  // namespace caisson::session
