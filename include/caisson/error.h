// An error is a value: what failed, on what, why, and what to do about it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

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

/// What kind of failure it is, for programs that react to it; the texts of an error are for people.
enum class ErrorCode : std::uint8_t {
  other,                 ///< stage, call and errno say everything
  command_denied,        ///< the policy does not permit this command
  program_not_started,   ///< execve failed; sys_errno says why
  no_interpreter,        ///< the program exists, but not the interpreter that its first line names, or its loader
  no_working_directory,  ///< the payload's working directory cannot be entered
  file_system_refused,   ///< the kernel does not create a file system with these options
  no_apparmor,           ///< the policy names an AppArmor profile, and AppArmor is not active
  apparmor_refused,      ///< AppArmor does not take the profile
  denied_path_missing,   ///< a path that is to be denied does not exist
  path_escapes,          ///< a path leads out of the directory in which it must stay
  selinux_refused,       ///< SELinux does not take the label
  no_user_namespace,     ///< the host lets this process create no user namespace
  masked_proc,           ///< the kernel mounts no new /proc, since parts of the caller's are covered
  hostname_refused,      ///< the sandbox's host name cannot be set
  command_lost,          ///< the command may have run; how it ended is not known
  digest_mismatch,       ///< the changes to commit are not the ones that were approved
  directory_replaced,    ///< another directory, or a link to one, is where a known one was
};

std::string_view name(ErrorCode code);

struct Error {
  Stage stage = Stage::launch;
  std::string call;    ///< the operation: "mount_setattr", "decode"
  std::string object;  ///< what it was applied to: "/workspace", "resources.memory"
  int sys_errno = 0;   ///< errno of the call, or 0 when no system call failed
  std::string reason;  ///< a description, when errno alone does not explain it
  std::string hint;    ///< what to do about it, or empty
  ErrorCode code = ErrorCode::other;
  std::vector<Error> others;  ///< further mistakes in the same input, such as a policy file

  /// Each mistake in one line (two with a hint): `/workspace: Operation not permitted (mount_setattr: EPERM)`.
  [[nodiscard]] std::string message() const;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace caisson
