// Executable lists: which programs can be started, enforced by the content of the sandbox's root.
//
// Names do not protect: a program can be copied, linked, loaded by `ld.so`, or come from memory. So with an
// allowlist only the listed programs, their loader and their libraries can be executed or mapped as code, each through
// a separate mount. Every other mount is noexec, which the kernel also enforces for mmap and so for `ld.so program` and
// LD_PRELOAD; program directories are empty except for listed programs. A blocklist removes single files, with
// their hard links in the payload's PATH. Memory files cannot be executable in either case.
//
// Not covered: what an allowed interpreter does in its own process, and programs built in a directory that
// `process.executable_directories` names.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// Directories of the system in the payload's PATH.
inline constexpr std::string_view kProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Multi-call programs act by the name under which they are called: a list that names one applet cannot mean the rest.
inline constexpr std::string_view kMultiCall[] = {"busybox", "toybox"};

/// Whether the policy has an allowlist or a blocklist of programs.
inline bool hasExecutableRules(const policy::Policy& policy) {
  return policy.process.allowed_executables || !policy.process.blocked_executables.empty();
}

/// An error if the lists cannot be enforced on this host, level or tier.
Result<void> checkExecutableLists(const policy::Policy& policy, const HostFacts& host);

/// The same, and an error if they do not allow `command`, which is not empty, to start.
Result<void> checkExecutables(const policy::Policy& policy, const HostFacts& host, const Command& command);

/// Adds /usr and similar directories with empty program directories, for an allowlist at level `full`.
void addSystemWithoutPrograms(const HostFacts& host, Plan& plan);

/// Makes every mount so far noexec as the lists require, adds executable mounts for what they allow and masks what they
/// block. Only denied paths and links may follow.
void addExecutables(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
