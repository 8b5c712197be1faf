// Paths of the host that a policy names.
#pragma once

#include <sys/types.h>

#include <string>

#include "sys/fd.h"

namespace caisson::plan {

/// A host path that the policy names, as probed. `path` is canonical: no links in it.
struct HostPath {
  std::string requested;  ///< as the policy names it
  std::string path;
  sys::SharedFd opened;  ///< the file itself (O_PATH); `path` may have become another one's since
  int sys_errno = 0;     ///< why it could not be probed, or 0
  std::string why_not;   ///< not empty: it must not be used
  std::string remedy;    ///< with `why_not`
  bool directory = false;
  bool regular_file = false;
  uid_t uid = 0;
  gid_t gid = 0;
  /// False: the payload of a root caller, which is another user, may not enter it. Probed for the workspace of the
  /// landlock tier, where nothing shows it under another owner.
  bool payload_may_enter = true;
};

/// A directory of the host that the payload can write to.
struct WrittenTree {
  std::string path;
  sys::SharedFd opened;
};

}  // namespace caisson::plan
