// What a policy must not have for a session.
#pragma once

#include "base/error.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::session {

/// Fails if the policy has what no session can do, with any approval: level none, the host's network, an OCI runtime.
Result<void> checkPolicy(const policy::Policy& policy);

}  // namespace caisson::session
