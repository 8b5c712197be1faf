#include "supervise/clone_error.h"

#include <cerrno>
#include <cstdlib>

namespace caisson::supervise {

Error cloneError(const char* call, const char* object, long error, bool user_namespace) {
  const char* hint = "run `caisson doctor`: it names what this host forbids and the remedy";
  if (error == ENOSPC || error == EUSERS)
    hint = "the host's limit on user namespaces is reached: sysctl user.max_user_namespaces";
  // Set by caisson itself. It decides about a hint only: any program may set it.
  if (user_namespace && std::getenv("CAISSON") != nullptr && (error == EPERM || error == ENOSPC || error == EUSERS)) {
    hint =
        "this is inside a caisson sandbox, which allows no namespaces: use --allow-weaker landlock, which confines by "
        "Landlock and a system-call filter alone";
  }
  if (error == EAGAIN) hint = "the limit on processes of this user is reached: ulimit -u";
  Error failed = sysError(Stage::launch, call, object, static_cast<int>(error), hint);
  // ENOSPC: user.max_user_namespaces is 0 or reached. EINVAL: a kernel built without them.
  const bool refused = error == EPERM || error == ENOSYS || error == ENOSPC || error == EUSERS || error == EINVAL;
  if (user_namespace && refused) failed.code = ErrorCode::no_user_namespace;
  return failed;
}

}  // namespace caisson::supervise
