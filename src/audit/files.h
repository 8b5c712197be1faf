// The log's own files, opened with suspicion: they may have been replaced by links, directories or another user's file.
#pragma once

#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::audit {

/// Opens `name` in `directory`: regular, ours, with one name only, never through a link, never blocking.
/// `path` is what messages call the directory.
Result<sys::Fd> openOwn(int directory, const std::string& path, const std::string& name, int flags);

}  // namespace caisson::audit
