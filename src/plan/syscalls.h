// Which system calls a payload may make: the built-in allowlist, the calls that are denied under every policy, and the
// argument rules on partly allowed calls.
#pragma once

#include <span>
#include <string_view>

#include "plan/syscall_filter.h"
#include "policy/model.h"

namespace caisson::plan {

/// Names of the built-in allowlist, including names that the running architecture lacks (open on aarch64); filters skip
/// those.
std::span<const std::string_view> allowedSyscalls();

/// Names that no policy may allow, denied with EPERM: each is a known way out or reaches kernel code that a payload
/// does not need. kAbsentCalls are not among them.
std::span<const std::string_view> forbiddenSyscalls();

/// The flags of clone that create a namespace. Without CLONE_NEWTIME: in clone, that bit belongs to the exit signal.
std::uint64_t namespaceFlags();

/// Secret argument halves that identify the payload's one permitted exec (allow_exec = false). The kernel reads `dirfd`
/// and `flags` of execveat as 32-bit values and ignores the rest of the registers.
struct ExecToken {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
};

/// The filter for `policy` at level `full`. `token` is used only when the policy forbids further execs.
Result<SyscallFilter> filterForFull(const policy::Policy& policy, ExecToken token, Architecture architecture = kNative);
/// Makes the calls that change owners and ids, where such a filter would only answer them: for root inside with more
/// than one id.
void makeIdCalls(SyscallFilter& filter);

/// Whether the filter of `policy` at level `full` is the built-in one, unchanged. Ignores whether calls are to be
/// reported (plan/observation.h).
bool usesBuiltinFilter(const policy::Policy& policy);

/// The built-in filter as a program compiled at build time.
std::span<const sock_filter> builtinProgram();
/// How many calls the built-in filter allows, at least with some arguments.
std::size_t builtinAllowed();

/// The filter for level `process`: the policy's allowlist, else everything except the policy's denylist and forbidden
/// calls and arguments.
Result<SyscallFilter> filterForProcess(const policy::Policy& policy, Architecture architecture = kNative);

/// The filter for the Landlock tier: that of level `full`, without the sockets, IPC and file attributes that namespaces
/// would separate from the host's.
Result<SyscallFilter> filterForLandlockTier(const policy::Policy& policy, Architecture architecture = kNative);

}  // namespace caisson::plan
