// Executable lists (SPEC X2): which programs can be started, made true by what is in the sandbox's root.
//
// Names are no protection: a program can be copied, linked, read by `ld.so`, or come from memory. So with an allowlist
// nothing in the sandbox can be executed or mapped as code but the listed programs, their loader and their libraries,
// each shown by a mount of its own: every other mount is noexec, which the kernel also holds against mmap and so
// against `ld.so program` and LD_PRELOAD, and the directories of programs are empty but for what is listed. A blocklist
// takes single files away, under every name they have. Memory files cannot be executable in either case.
//
// Not promised: what an allowed interpreter does in its own process, and programs built in a directory that
// `process.executable_directories` names.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

inline constexpr std::string_view kProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Programs that are many programs by the name they are called by: a list that names one applet cannot mean the rest.
inline constexpr std::string_view kMultiCall[] = {"busybox", "toybox"};

inline bool hasExecutableRules(const policy::Policy& policy) {
  return policy.process.allowed_executables || !policy.process.blocked_executables.empty();
}

/// Whether the lists can be carried out as planned, and whether they let `command` start at all.
Result<void> checkExecutables(const policy::Policy& policy, const HostFacts& host, const Command& command);

/// /usr and its like without a single program, for an allowlist at level `full`.
void addSystemWithoutPrograms(const HostFacts& host, Plan& plan);

/// Makes every mount so far noexec as the lists demand, and adds what they allow. Only denied paths may follow.
void addExecutables(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
