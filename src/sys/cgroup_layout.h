// The cgroup hierarchies of this host, and the cgroup of this process in each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sys/attempt.h"

namespace caisson::sys {

enum class CgroupLayout : std::uint8_t { none, v1, v2, hybrid };  ///< hybrid: v1 controllers beside a v2 hierarchy
std::string_view name(CgroupLayout layout);

/// One hierarchy and our own cgroup in it.
struct CgroupHierarchy {
  bool v2 = false;
  std::string controllers;      ///< v1: of the mount ("memory", "cpu,cpuacct"); v2: available to our own cgroup
  std::string directory;        ///< path of our own cgroup; empty if the mount does not show it
  Attempt make_child;           ///< creating and removing a directory below
  bool procs_writable = false;  ///< cgroup.procs: processes can be moved here
  std::string subtree_control;  ///< v2: controllers that children of our own cgroup have
};

struct CgroupProbe {
  CgroupLayout layout = CgroupLayout::none;
  std::vector<CgroupHierarchy> hierarchies;
  /// The hierarchy that provides `controller`, or null.
  [[nodiscard]] const CgroupHierarchy* find(std::string_view controller) const;
  /// Whether our own cgroup has `controller`, a child of it could be made and its cgroup.procs is writable; false if
  /// that was not tried. Does not check that a child gets the controller (v2: `subtree_control`).
  [[nodiscard]] bool usable(std::string_view controller) const;
};

/// Pure: parses /proc/self/mountinfo and /proc/self/cgroup. Fills only `layout`, `v2`, `directory` and, for v1,
/// `controllers`; the caller reads and tries the rest. Ignores v1 hierarchies without controllers.
CgroupProbe parseCgroups(std::string_view mountinfo, std::string_view self_cgroup);

}  // namespace caisson::sys
