// The access list and the extended attributes of a file of the host, which a commit keeps when it replaces the file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::session {

/// `system.posix_acl_access` and names of `user.*`, with their values; and the SELinux label, which is set if the
/// host's policy allows it.
using HostAttributes = std::vector<std::pair<std::string, std::string>>;

/// Reads them of the regular file `name` in `directory`, never through a link. `path`: for errors. EACCES if the file
/// has some that its permissions do not let us read.
Result<HostAttributes> readAttributes(int directory, const std::string& name, const std::string& path);
/// Gives a new file exactly these; removes the access list that it got from its directory. Call before chmod, which
/// sets the mask of an access list.
Result<void> setAttributes(int file, const HostAttributes& attributes, const std::string& path);

}  // namespace caisson::session
