// Confines a session's supervisor once its sandbox runs, before the first payload does.
#pragma once

#include "base/error.h"
#include "plan/syscall_filter.h"

namespace caisson::session {

/// The system calls of a supervisor: files, sockets, waiting, inspecting and signalling processes. No exec, no
/// executable mappings, no namespaces, no mounts, no tracing. The launcher does what needs these (launcher.h).
plan::SyscallFilter supervisorFilter(Architecture architecture = kNative);

/// Drops capabilities, sets no_new_privs and installs the filter; a forked process inherits all three. A root caller's
/// supervisor keeps the capabilities over files, since the session's layers belong to the payload's user.
Result<void> confineSupervisor();

}  // namespace caisson::session
