// Observes the host: the facts a plan is made from.
#pragma once

#include "plan/plan.h"

namespace caisson::supervise {

/// Facts for `policy`, seen from this process. Reads only; what is missing is a fact, not an error.
plan::HostFacts observeHost(const policy::Policy& policy);

}  // namespace caisson::supervise
