// The mounts of a mount namespace, as /proc/self/mountinfo lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::sys {

struct MountEntry {
  std::uint64_t id = 0;  ///< as in statx (STATX_MNT_ID)
  std::string device;    ///< "8:1": equal for all mounts of a file system
  std::string root;      ///< the directory or file of that file system that is shown
  std::string point;     ///< where it is shown
  std::string type;      ///< of the file system: "ext4"; empty: not known
};

/// Skips lines that it cannot parse.
std::vector<MountEntry> parseMountTable(std::string_view mountinfo);

/// Decodes mountinfo's escapes: \ooo for space, tab, newline and backslash.
std::string unescapeMountField(std::string_view text);

}  // namespace caisson::sys
