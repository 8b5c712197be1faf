// Opens the log's files defensively: they may have been replaced by links, directories or another user's files.
#pragma once

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::audit {

/// Opens `name` in `directory`: it must be a regular file, ours, with one link. Follows no link and never blocks. A new
/// file gets mode 0600; so does one that is opened for writing and that others may access. `path` is the name of the
/// directory in messages.
Result<sys::Fd> openOwn(int directory, const std::string& path, const std::string& name, int flags);

}  // namespace caisson::audit
