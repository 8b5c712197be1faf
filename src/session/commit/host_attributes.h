// The access lists and the extended attributes of a file or directory of the host, which a commit keeps when it
// replaces a file, and which come back when it is undone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::session {

/// The access list, of a directory also the default one, and names of `user.*`, with their values; and the SELinux
/// label, which is set if the host's policy allows it.
using HostAttributes = std::vector<std::pair<std::string, std::string>>;

/// Reads them of the file or directory `name` in `directory`, never through a link. `path`: for errors. EACCES if the
/// file has some that its permissions do not let us read.
Result<HostAttributes> readAttributes(int directory, const std::string& name, const std::string& path);
/// Gives a new object exactly these; removes the access lists that it got from its directory. Call before chmod, which
/// sets the mask of an access list.
Result<void> setAttributes(int file, const HostAttributes& attributes, const std::string& path);

}  // namespace caisson::session
