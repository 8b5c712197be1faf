// A seccomp profile in OCI form (Docker, Podman, Kubernetes), which narrows the filter of a plan.
#pragma once

#include <string_view>

#include "base/error.h"
#include "plan/syscall_filter.h"

namespace caisson::plan {

/// The sandbox a profile is read for; its entries can depend on these. A payload has no capabilities.
struct OciTarget {
  int kernel_major = 0, kernel_minor = 0;
  bool single_exec = false;  ///< the payload is started by execveat
};

/// Denies what the profile does not allow. What `filter` denies stays denied with its own action, so a profile that
/// allows everything changes nothing. Of two entries for a call, the one that denies wins. `text` is JSON, `name` is
/// for errors. An error if the profile uses what cannot be enforced, or denies a call that starts the payload.
Result<void> applyOciProfile(std::string_view text, std::string_view name, const OciTarget& target,
                             SyscallFilter& filter);

}  // namespace caisson::plan
