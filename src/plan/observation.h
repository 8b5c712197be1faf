// Watching what a program asks of files, for `--learn` and `--trace`: which calls are shown to the supervisor.
//
// A call is shown only where the filter would allow it anyway, and then always goes on: whether it may is decided by
// the kernel's copy of its arguments, as ever, and never by the memory they point to. A run that is not watched has
// none of this in its filter.
#pragma once

#include <cstdint>
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
  PathArgument second{-1, -1};  ///< of a call with two: what is made. path -1: there is none
  std::int8_t flags = -1;       ///< where the flags of an `open` are
};

std::span<const ObservedCall> observedFileCalls();
/// Calls by which a program asks for a host: their arguments lead to addresses, or to questions for a name server.
std::span<const std::string_view> observedNetworkCalls();

/// Has the filter show those calls. The payload's own start is not shown, since nobody listens yet.
void observeFiles(SyscallFilter& filter);
void observeNetwork(SyscallFilter& filter);

}  // namespace caisson::plan
