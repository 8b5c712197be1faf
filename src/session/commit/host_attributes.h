// The access lists and the extended attributes of a file or directory of the host, which a commit keeps when it
// replaces a file, and which come back when it is undone.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace caisson::session {

/// The access list, of a directory also the default one, and names of `user.*`, with their values; and the SELinux
/// label, which is set if the host's policy allows it.
using HostAttributes = std::vector<std::pair<std::string, std::string>>;

inline constexpr const char* kAccessList = "system.posix_acl_access";
/// Reads them of the file or directory `name` in `directory`, never through a link. `path`: for errors. EACCES if the
/// file has some that its permissions do not let us read.
Result<HostAttributes> readAttributes(int directory, const std::string& name, const std::string& path);
Result<HostAttributes> readAttributes(int object, const std::string& path);
/// Who owns a file of the host.
struct HostOwner {
  uid_t uid = 0;
  gid_t gid = 0;
};
/// Gives a new object the group of one that it replaces or copies, for root also the owner, and returns what of `mode`
/// to set after that, since it clears setuid: where the group cannot be given, another one gets no more than others
/// have. `object`: may be opened with O_PATH.
mode_t takeOwner(int object, const HostOwner& owner, mode_t mode);
/// What of `mode` takeOwner() leaves, before there is an object: for a manifest.
mode_t modeForOwner(const std::optional<HostOwner>& owner, mode_t mode);
/// The permissions of an object without its access list: where it has one, the mode shows the list's mask in the place
/// of what the group may.
mode_t modeWithoutAccessList(int object, mode_t mode);
inline constexpr mode_t kAllOfOthers = 077;
/// The permissions of a file with this mode that are access for its group or others: reading and writing, and executing
/// where they cannot read it. Else that it becomes executable lets them do no more than a copy of it.
constexpr mode_t accessOfOthers(mode_t mode) { return 066U | (011U & ~((mode & 044U) >> 2U)); }
/// Gives a new object exactly these; removes the access lists that it got from its directory. Call before chmod, which
/// sets the mask of an access list. `object`: may be opened with O_PATH.
Result<void> setAttributes(int object, const HostAttributes& attributes, const std::string& path);

}  // namespace caisson::session
