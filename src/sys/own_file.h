// A file that holds something of the caller's own, opened so that nobody else chooses which file that is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

enum class Privacy : std::uint8_t {
  secret,      ///< the caller's, and nobody else may read or write it
  unchanging,  ///< the caller's or root's, and nobody else may write it
};

/// Opens the regular file at `path`, absolute and without `..`, for reading. A link anywhere in it is an error
/// (ELOOP or ENOTDIR): whoever can place one would decide what is read.
Result<Fd> openOwnFile(const std::string& path, Privacy privacy);

}  // namespace caisson::sys
