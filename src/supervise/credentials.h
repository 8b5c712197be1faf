// The broker of a sandbox with credentials: where the secrets are read, for the last time outside it.
#pragma once

#include "base/error.h"
#include "broker/start.h"
#include "plan/plan.h"

namespace caisson::supervise {

struct BrokerOptions {
  bool for_session = false;       ///< the sandbox runs more than one command: the policy's wall time does not end it
  bool forget_variables = false;  ///< overwrite the variables that held secrets: this process has no other use for them
};

/// Reads the secrets that `plan` names, hands them to a broker of its own, and fills the plan's trust file with the
/// host's authorities and the broker's. Before the launch.
Result<broker::Started> startBroker(plan::Plan& plan, const BrokerOptions& options);

}  // namespace caisson::supervise
