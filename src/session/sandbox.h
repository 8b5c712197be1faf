// A session's sandbox: the plan that its metadata means on this host, and the start of its pid 1.
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
inline constexpr const char* kEndReasonFile = "ended";  ///< why the sandbox ended, when nobody asked it to
inline constexpr const char* kEmptyDirectory = "empty";
inline constexpr const char* kLogDirectory = "logs";

/// What a session's commands are planned from. Observing the host costs more than all the rest of a command: a handle
/// keeps it.
struct Planner {
  policy::Policy policy;
  plan::HostFacts facts;

  static Result<Planner> observe(const sys::RootDir& directory, const Metadata& metadata);
  /// Plans by the policy of these metadata from now on; what is known of the host stays.
  Result<void> usePolicy(const sys::RootDir& directory, const Metadata& metadata);
  /// The plan for one command. Its steps build the whole sandbox; the rest is what each command gets.
  [[nodiscard]] Result<plan::Plan> plan(const Metadata& metadata, const plan::Command& command) const;
  /// The plan that builds the sandbox, for no command in particular.
  [[nodiscard]] Result<plan::Plan> planSandbox(const Metadata& metadata) const {
    return plan(metadata, {{"true"}, false});
  }
  /// The same without the steps and without what pid 1 is in already. Most of it is one command's as the next one's.
  Result<plan::Plan> planCommand(const Metadata& metadata, const plan::Command& command);

 private:
  std::optional<plan::Plan> common_;
  bool common_is_interactive_ = false;
};

/// Whether a directory's file system has what an overlay's upper layer needs; without it some work would fail halfway,
/// much later. `path`: for the error, which names what is missing. A descriptor that is only a path does not tell about
/// attributes.
Result<void> checkFeatures(const std::string& path, int directory);

/// Whether pid 1 lives: it holds a lock that the kernel takes from it at its end.
bool isAlive(const sys::RootDir& directory);

/// Whether a sandbox runs, or its supervisor is still writing down how it ended.
bool isSupervised(const sys::RootDir& directory);

/// A directory inside a running sandbox, by its path there.
Result<sys::Fd> openInSandbox(pid_t init, const std::string& path);

/// Kills the supervisor and pid 1, and with them everything in the sandbox. Fine when there are none. For a supervisor
/// that does not answer; else it is asked to end (connection.h).
Result<void> killSandbox(const sys::RootDir& directory);

}  // namespace caisson::session
