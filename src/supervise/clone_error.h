// Explains why new namespaces could not be created.
#pragma once

#include "base/error.h"

namespace caisson::supervise {

/// `error` is the errno of `call`; `object` is what was to be created. The code is no_user_namespace if the host
/// refuses user namespaces, which is when the rung `landlock` may be taken.
Error cloneError(const char* call, const char* object, long error, bool user_namespace);

/// Gives the error cause and remedy if a sysctl or AppArmor of this host makes user namespaces useless; else false.
/// Reads the host: only for errors.
bool explainNamespaceError(Error& error);

}  // namespace caisson::supervise
