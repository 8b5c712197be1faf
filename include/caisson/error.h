// An error is a value that a person can act on: what was tried, on what, why it failed, what to do.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson {

/// Where in the life of a run something went wrong.
enum class Stage : std::uint8_t {
  usage,       ///< the command line or the request itself
  policy,      ///< reading, decoding or checking a policy
  plan,        ///< turning a policy into what this host must do
  host,        ///< the host lacks something that was asked for
  launch,      ///< clone, pipes, id maps
  namespaces,  ///< joining and configuring namespaces
  mounts,      ///< building the sandbox's root
  identity,    ///< ids, groups, capabilities, no_new_privs
  landlock,
  seccomp,
  limits,     ///< rlimits, cgroups, quotas
  self_test,  ///< the sandbox's own check before the payload starts
  exec,       ///< the payload's execve
  supervise,  ///< waiting, relaying, ending
  state,      ///< caisson's own files
};

std::string_view name(Stage stage);

struct Error {
  Stage stage = Stage::launch;
  std::string call;    ///< the operation: "mount_setattr", "decode"
  std::string object;  ///< what it was applied to: "/workspace", "resources.memory"
  int sys_errno = 0;   ///< errno of the call, or 0 when no system call failed
  std::string reason;  ///< why, in words, when errno alone does not say it
  std::string hint;    ///< what to do about it, or empty

  /// One line (two with a hint): `mount_setattr("/workspace"): EPERM: Operation not permitted (stage mounts)`.
  [[nodiscard]] std::string message() const;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace caisson
