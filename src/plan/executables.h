// Executable lists: which programs can be started, enforced by the content of the sandbox's root.
//
// Names do not protect: a program can be copied, linked, loaded by `ld.so`, or come from memory. So with an
// allowlist only the listed programs, their loader and their libraries can be executed or mapped as code, each through
// a separate mount. Every other mount is noexec, which the kernel also enforces for mmap and so for `ld.so program` and
// LD_PRELOAD; program directories are empty except for listed programs. A blocklist removes single files, under every
// name they have. Memory files cannot be executable in either case.
//
// Not covered: what an allowed interpreter does in its own process, and programs built in a directory that
// `process.executable_directories` names.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

inline constexpr std::string_view kProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Multi-call programs act by the name under which they are called: a list that names one applet cannot mean the rest.
inline constexpr std::string_view kMultiCall[] = {"busybox", "toybox"};

inline bool hasExecutableRules(const policy::Policy& policy) {
  return policy.process.allowed_executables || !policy.process.blocked_executables.empty();
}

/// Whether the lists can be enforced on this host.
Result<void> checkExecutableLists(const policy::Policy& policy, const HostFacts& host);

/// The same, and whether they allow `command` to start.
Result<void> checkExecutables(const policy::Policy& policy, const HostFacts& host, const Command& command);

/// Adds /usr and similar directories without any program, for an allowlist at level `full`.
void addSystemWithoutPrograms(const HostFacts& host, Plan& plan);

/// Makes every mount so far noexec as the lists require, and adds what they allow. Only denied paths may follow.
void addExecutables(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
