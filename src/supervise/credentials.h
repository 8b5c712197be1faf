// The broker of a sandbox with credentials: where the secrets are read, for the last time outside it.
#pragma once

#include "base/error.h"
#include "broker/start.h"
#include "plan/plan.h"

namespace caisson::supervise {

struct BrokerWish {
  bool orphan = false;            ///< for a sandbox that outlives this process
  bool forget_variables = false;  ///< overwrite the variables that held secrets: this process has no other use for them
};

/// Reads the secrets that `plan` names, hands them to a broker of its own, and fills the plan's trust file with the
/// host's authorities and the broker's. Before the launch.
Result<broker::Started> startBroker(plan::Plan& plan, const BrokerWish& wish);

}  // namespace caisson::supervise
