// Why this host refuses user namespaces: a sysctl or AppArmor, with the commands that lift it. Pure.
#pragma once

#include <optional>
#include <string>

#include "host/probe.h"

namespace caisson::host {

struct UserNamespaceRefusal {
  std::string cause;   ///< one line
  std::string remedy;  ///< for `caisson doctor`: lines that begin with "$ " are commands, the others are prose
  std::string hint;    ///< for the error of a run: one line
};

/// `sys_errno`: of creating the namespace, of mapping its ids, or of a call inside that needs a capability. Nothing if
/// neither a sysctl nor AppArmor explains it, or if a container around this process may be the cause.
std::optional<UserNamespaceRefusal> explainUserNamespaceRefusal(const Obstacles& obstacles, uid_t uid, int sys_errno);

}  // namespace caisson::host
