// Access to a directory that we own and that its mode closes to us: a payload can make one, and hide in it what it
// wrote.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "isolation/child.h"
#include "sys/change_mode.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Adds the owner's permissions to the mode of a directory of ours; follows no link. False: it is not ours, or has
/// them.
inline bool giveOwnerAccess(const sys::RootDir& root, const std::string& path) {
  const long opened =
      isolation::openBeneath(root.descriptor(), path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return false;
  const sys::Fd directory(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  if ((status.st_mode & S_IRWXU) == S_IRWXU) return false;
  return sys::changeMode(directory.get(), (status.st_mode & 07777U) | S_IRWXU) == 0;
}

}  // namespace caisson::host
