// Reports file and network calls to the supervisor, for `--learn`, `--trace` and `audit.processes`.
//
// A call is reported only where the filter would allow it anyway, and then always continues: the filter decides from
// the kernel's copy of the arguments, never from memory they point to. Other runs have none of this in their filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "plan/syscall_filter.h"

namespace caisson::plan {

/// What a call does with its path. `look`: only looks it up (attributes, link target, chdir); `write`: also renames and
/// removes.
enum class FileOperation : std::uint8_t { look, open, write, create, execute };

/// Where a call has a path: indexes of the arguments. directory -1: relative to the working directory.
struct PathArgument {
  std::int8_t directory = -1;
  std::int8_t path = 0;
};

struct ObservedCall {
  std::string_view name;
  FileOperation operation = FileOperation::look;
  PathArgument first;
  PathArgument second{-1, -1};  ///< of a call with two: the created path. path -1: there is none
  std::int8_t flags = -1;       ///< index of the flags of an `open`
};

/// Calls that name a file by its path.
std::span<const ObservedCall> observedFileCalls();
/// Calls that name a host: their arguments point to addresses or DNS queries.
std::span<const std::string_view> observedNetworkCalls();

/// Makes the filter report observedFileCalls(), except the payload's own exec: the supervisor does not listen yet.
void observeFiles(SyscallFilter& filter);
/// Makes the filter report observedNetworkCalls().
void observeNetwork(SyscallFilter& filter);

/// Makes the filter report execs, and signals that are sent to a process (not to a thread, not signal 0): for
/// `audit.processes`. Not forks: a reported call that a signal interrupts before the supervisor has it returns EINTR,
/// if the handler has no SA_RESTART. Shells have such a handler for SIGCHLD, and no program expects EINTR of a fork.
void observeProcesses(SyscallFilter& filter);
/// Makes the filter report new processes and threads, for separate limits on both.
void observeTasks(SyscallFilter& filter);
/// Whether this call creates a process or a thread.
bool createsTask(std::string_view call);
/// Whether this call with these arguments creates a thread and not a process.
bool createsThread(std::string_view call, std::span<const std::uint64_t> arguments);
/// Which argument of this call is a signal number; nullopt unless observeProcesses() reports it as a signal.
std::optional<std::size_t> signalArgument(std::string_view call);

}  // namespace caisson::plan
