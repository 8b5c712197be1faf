// Opens a file of the caller such that no other user can redirect it to another file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

enum class Privacy : std::uint8_t {
  secret,      ///< owned by the caller, and no other user may read or write it
  unchanging,  ///< owned by the caller or root, and no other user may write it
};

/// Opens the regular file at `path` for reading. A relative path is an error; `..` is not checked. A link in any
/// component is an error (ELOOP or ENOTDIR), since its creator could choose the file.
Result<Fd> openOwnFile(const std::string& path, Privacy privacy);

/// Reads a key or a password of at most 64 KiB. The file must belong to the caller or to root, and other users may not
/// access it; its group may read root's, as is usual for the keys of certificates. Links are followed.
Result<std::string> readSecretFile(const std::string& path);

}  // namespace caisson::sys
