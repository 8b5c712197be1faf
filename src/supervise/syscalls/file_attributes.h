// Changes modes, owners and times of files for a payload of the landlock tier.
//
// Landlock does not cover these calls, so the filter leaves them to the supervisor (plan::kServe), which makes them on
// files below the plan's writable directories and nowhere else. The payload controls everything that leads to a file:
// the path in its memory, its working directory, its descriptors, links and renames, and other threads change them
// meanwhile. So nothing of it decides: a path is copied once and resolved beneath an open directory (sys::RootDir), the
// call is made on the descriptor of the object that was found there, and the payload's own call never continues. A race
// can only select another file that the payload may change too.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/syscalls/listener.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

class FileAttributes {
 public:
  /// Opens plan.attribute_trees; one that cannot be opened is left out. Must precede the payload's start, which could
  /// replace a directory in another one by a link.
  explicit FileAttributes(const plan::Plan& plan);

  /// Makes the call of `attempt`: chmod, chown, utime and their variants. Returns its errno, 0 after success: EPERM for
  /// a file outside the trees, a setuid or setgid bit, and an owner other than the payload's own.
  [[nodiscard]] int change(const Attempt& attempt, const Listener& listener) const;

 private:
  struct Tree {
    std::string path;
    sys::RootDir root;
  };
  struct Found {
    sys::Fd object;  ///< O_PATH
    int error = 0;   ///< if there is none
  };

  [[nodiscard]] const Tree* treeOf(const std::string& path) const;
  /// The object at an absolute path in one of the trees. `follow`: a final link.
  [[nodiscard]] Found find(std::string path, bool follow) const;
  /// The object behind a descriptor of the process, or its working directory (AT_FDCWD).
  [[nodiscard]] Found findDescriptor(pid_t process, int descriptor) const;
  /// The object at a path relative to such a directory.
  [[nodiscard]] Found findRelative(pid_t process, int directory, const std::string& path, bool follow) const;

  std::vector<Tree> trees_;
  uid_t uid_;  ///< of the payload
  gid_t gid_;
  bool own_user_;  ///< the payload has our uid
};

}  // namespace caisson::supervise
