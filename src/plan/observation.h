// Reports file and network calls to the supervisor, for `--learn` and `--trace`.
//
// A call is reported only where the filter would allow it anyway, and then always continues: the filter decides from
// the kernel's copy of the arguments, never from memory they point to. Other runs have none of this in their filter.
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
  PathArgument second{-1, -1};  ///< of a call with two: the created path. path -1: there is none
  std::int8_t flags = -1;       ///< index of the flags of an `open`
};

std::span<const ObservedCall> observedFileCalls();
/// Calls that name a host: their arguments point to addresses or DNS queries.
std::span<const std::string_view> observedNetworkCalls();

/// Makes the filter report those calls, except the payload's own exec: the supervisor does not listen yet.
void observeFiles(SyscallFilter& filter);
void observeNetwork(SyscallFilter& filter);

}  // namespace caisson::plan
