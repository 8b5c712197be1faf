// Opens what a user names, unless a link that a sandbox may have planted leads there.
//
// A program that could write to a tree can leave a link in it: `data -> ~/.ssh`. Whoever names `data` in a later run
// means the directory that used to be there. So a link in such a tree that is not older than the first sandbox which
// could write there, and that leads out of the tree, is not followed. All other links work.
#pragma once

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::host {

struct NamedOpen {
  sys::Fd opened;  ///< O_PATH
  int error = 0;   ///< if there is none: an errno; ELOOP with `why_not`
  std::string why_not, remedy;
};

/// Like open(2) with O_PATH, which follows links. One system call for a path without links.
NamedOpen openNamed(const std::string& path);

}  // namespace caisson::host
