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

enum class FileOperation : std::uint8_t { look, open, write, create, execute };

/// A path among the arguments of a call. -1: the working directory.
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

std::span<const ObservedCall> observedFileCalls();
/// Calls that name a host: their arguments point to addresses or DNS queries.
std::span<const std::string_view> observedNetworkCalls();

/// Makes the filter report those calls, except the payload's own exec: the supervisor does not listen yet.
void observeFiles(SyscallFilter& filter);
void observeNetwork(SyscallFilter& filter);

/// Makes the filter report new processes (not threads), execs, and signals to other processes: for `audit.processes`.
void observeProcesses(SyscallFilter& filter);
/// Makes the filter report new processes and threads, for separate limits on both. Call after observeProcesses().
void observeTasks(SyscallFilter& filter);
/// Whether this call creates a process or a thread, and whether with these arguments it is a thread.
bool createsTask(std::string_view call);
bool createsThread(std::string_view call, std::span<const std::uint64_t> arguments);
/// Which argument of this call is a signal number; nothing if it sends none.
std::optional<std::size_t> signalArgument(std::string_view call);

}  // namespace caisson::plan
