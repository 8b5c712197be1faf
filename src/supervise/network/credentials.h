// Starts the broker of a sandbox with credentials, and reads the secrets for it.
#pragma once

#include "base/error.h"
#include "broker/start.h"
#include "plan/plan.h"

namespace caisson::supervise {

struct BrokerOptions {
  std::string program;            ///< the caisson program (Request::program)
  bool for_session = false;       ///< more than one command: the policy's wall time does not end it
  bool forget_variables = false;  ///< overwrite the variables that held secrets, which this process no longer needs
};

/// Reads the secrets that `plan` names, passes them to a new broker, and fills the plan's trust file with the
/// authorities of the host and of the broker. Call before the launch.
Result<broker::Started> startBroker(plan::Plan& plan, const BrokerOptions& options);

}  // namespace caisson::supervise
