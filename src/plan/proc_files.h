// The payload's view of /proc besides its processes: entries served by the kernel, and files that caisson writes with
// the sandbox's limits instead of the host's figures.
#pragma once

#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace caisson::plan {

/// Top-level entries that stay as they are: they describe the sandbox's own processes and namespaces, or are the same
/// on every host. Everything else is masked or covered, including entries of future kernels.
inline constexpr std::string_view kShownProc[] = {"filesystems", "mounts",  "net",        "self",
                                                  "sys",         "sysvipc", "thread-self"};

/// The memory that a payload sees, in bytes: its limit, or the machine's where that is less; 0: unknown.
std::uint64_t shownMemory(const policy::Policy& policy, const HostFacts& host);

/// Files with the sandbox's values that cover the kernel's; programs size themselves by them. Written once, at the
/// start.
std::vector<CoverFile> procFiles(const policy::Policy& policy, const HostFacts& host);

/// Whether a path below /proc is masked: neither shown, nor covered, nor a process.
bool isMaskedProc(std::string_view path);

}  // namespace caisson::plan
