// Starts the sandbox that `caisson run` would start here, to find out whether it does. A verdict from single probes
// can differ from that of a run; this one cannot.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/policy.h"

namespace caisson {

struct Trial {
  bool started = false;            ///< with `rungs`
  std::vector<std::string> rungs;  ///< what --allow-weaker has to name; empty: nothing
  std::optional<Error> error;      ///< why it does not start without them
  std::map<std::string, std::string> layers;
};

/// Runs `true` under this policy, without an audit record; its workspace is the policy's. If a /proc with covered parts
/// is the obstacle, tries the weaker rungs as well.
Trial tryLaunch(const Policy& policy);

}  // namespace caisson
