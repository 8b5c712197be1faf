#include "session/session_policy.h"

#include "plan/runtime.h"
#include "policy/model.h"

namespace caisson::session {

Result<void> checkPolicy(const policy::Policy& policy) {
  if (policy.isolation.level == policy::Level::none) {
    return fail(plainError(Stage::policy, "session", "isolation.level", "a session cannot run without isolation",
                           "use --level full or --level process"));
  }
  if (policy.network.mode == policy::NetworkMode::host) {
    return fail(plainError(Stage::policy, "session", "network.mode", "a session cannot use the host's network",
                           "use --net proxy --allow-host HOST"));
  }
  return plan::refuseRuntime(policy, "a session");
}

}  // namespace caisson::session
