// The OCI runtime of a policy (isolation.runtime): as found on the host, and as planned.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policy/model.h"

namespace caisson::plan {

/// The OCI runtime that the policy names, as found.
struct RuntimeFacts {
  std::string path;                       ///< empty: not usable
  std::string why_not, hint;              ///< then
  std::vector<std::string> proc_entries;  ///< top-level names of /proc that are not processes
};

/// The OCI runtime that carries the plan out instead of caisson (docs/runtimes.md).
struct RuntimePlan {
  policy::Runtime kind = policy::Runtime::runc;
  std::string path;                           ///< of its program
  std::vector<std::string> masked_proc;       ///< paths of /proc that the payload must not see
  std::map<std::string, std::string> system;  ///< HostFacts::system_directories, for the runtime itself
  /// Whether caisson's pid 1 runs in the container and applies the last layers. gVisor has no Landlock and passes no
  /// sockets of the host on.
  [[nodiscard]] bool hasInit() const { return kind != policy::Runtime::runsc; }
};

}  // namespace caisson::plan
