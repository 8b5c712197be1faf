#include "supervise/clone_error.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "host/user_namespace_refusal.h"

namespace caisson::supervise {

Error cloneError(const char* call, const char* object, long error, bool user_namespace) {
  const char* hint = "run `caisson doctor`: it names what this host forbids and the remedy";
  if (error == ENOSPC || error == EUSERS)
    hint = "the host's limit on user namespaces is reached: sysctl user.max_user_namespaces";
  // Set by caisson itself. It decides about a hint only: any program may set it.
  const bool nested = std::getenv("CAISSON") != nullptr;
  if (user_namespace && nested && (error == EPERM || error == ENOSPC || error == EUSERS)) {
    hint =
        "this is inside a caisson sandbox, which allows no namespaces: use --allow-weaker landlock, which confines by "
        "Landlock and a system-call filter alone";
  }
  if (error == EAGAIN) hint = "the limit on processes of this user is reached: ulimit -u";
  Error failed = sysError(Stage::launch, call, object, static_cast<int>(error), hint);
  // EACCES: AppArmor. ENOSPC: user.max_user_namespaces is 0 or reached. EINVAL: a kernel built without them.
  const bool refused =
      error == EPERM || error == EACCES || error == ENOSYS || error == ENOSPC || error == EUSERS || error == EINVAL;
  if (user_namespace && refused) {
    failed.code = ErrorCode::no_user_namespace;
    if (!nested) (void)explainNamespaceError(failed);
  }
  return failed;
}

bool explainNamespaceError(Error& error) {
  const auto refusal = host::explainUserNamespaceRefusal(host::readObstacles(), ::geteuid(), error.sys_errno);
  if (!refusal) return false;
  error.code = ErrorCode::no_user_namespace;
  error.reason = refusal->cause;
  error.hint = refusal->hint;
  return true;
}

}  // namespace caisson::supervise
