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

/// The memory that a payload is told: its limit, or the machine's where that is less.
std::uint64_t shownMemory(const policy::Policy& policy, const HostFacts& host);

/// Covered by files of ours; programs size themselves by them. They are written once, at the start.
std::vector<CoverFile> procFiles(const policy::Policy& policy, const HostFacts& host);

/// Whether a path below /proc is masked.
bool isMaskedProc(std::string_view path);

}  // namespace caisson::plan
