// Other names of caisson's own directories: a bind mount, or a second mount of their file system, shows them elsewhere.
#pragma once

#include <string>
#include <vector>

#include "sys/mount_table.h"

namespace caisson::host {

/// Where else the mounts show `directory` (canonical; it need not exist), a part of it, or what is mounted in it.
/// `mount`: the mount that it lies in; 0: unknown.
std::vector<std::string> otherNamesOf(const std::string& directory, std::uint64_t mount,
                                      const std::vector<sys::MountEntry>& mounts);

/// The same for all these directories, in this process's mount namespace.
std::vector<std::string> otherNamesOf(const std::vector<std::string>& directories);

}  // namespace caisson::host
