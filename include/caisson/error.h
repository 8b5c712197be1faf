// An error is a value: what failed, on what, why, and what to do about it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson {

/// The phase of a run in which the error occurred.
enum class Stage : std::uint8_t {
  usage,       ///< the command line or the request itself
  policy,      ///< reading, decoding or checking a policy
  plan,        ///< computing from a policy what to set up on this host
  host,        ///< the host lacks a required feature
  launch,      ///< clone, pipes, id maps
  namespaces,  ///< joining and configuring namespaces
  mounts,      ///< building the sandbox's root
  identity,    ///< uid and gid, groups, capabilities, no_new_privs
  landlock,
  seccomp,
  limits,     ///< rlimits, cgroups, quotas
  self_test,  ///< caisson's check of the sandbox before the payload starts
  exec,       ///< the payload's execve
  supervise,  ///< waiting, relaying output, killing
  state,      ///< caisson's own state files
};

std::string_view name(Stage stage);

struct Error {
  Stage stage = Stage::launch;
  std::string call;    ///< the operation: "mount_setattr", "decode"
  std::string object;  ///< what it was applied to: "/workspace", "resources.memory"
  int sys_errno = 0;   ///< errno of the call, or 0 when no system call failed
  std::string reason;  ///< a description, when errno alone does not explain it
  std::string hint;    ///< what to do about it, or empty

  /// One line (two with a hint): `mount_setattr("/workspace"): EPERM: Operation not permitted (stage mounts)`.
  [[nodiscard]] std::string message() const;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace caisson
