#include "sys/cgroup_layout.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "sys/mount_table.h"

namespace caisson::sys {
namespace {

bool listed(std::string_view list, std::string_view word, char separator) {
  const auto parts = split(list, separator);
  return std::ranges::find(parts, word) != parts.end();
}

/// Parses /proc/self/cgroup: controllers ("" for v2) -> our path.
std::map<std::string, std::string, std::less<>> ownPaths(std::string_view self_cgroup) {
  std::map<std::string, std::string, std::less<>> paths;
  for (const std::string_view line : split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    paths.emplace(line.substr(first + 1, second - first - 1), line.substr(second + 1));
  }
  return paths;
}

/// The host path of our cgroup, or "" if the mount does not show it: a mount may begin below the hierarchy's root.
std::string directoryOf(std::string_view mount_point, std::string_view mount_root, std::string_view own) {
  if (own.starts_with("/..")) return {};  // above the root of our cgroup namespace
  if (mount_root != "/") {
    if (!own.starts_with(mount_root)) return {};
    own.remove_prefix(mount_root.size());
    if (!own.empty() && own.front() != '/') return {};
  }
  std::string directory(mount_point);
  if (own != "/") directory += own;
  return directory;
}

/// The entry of /proc/self/cgroup (a key of `paths`) that a v1 mount belongs to, found by its super block options; ""
/// if there is none. Returns "cpu,cpuacct" or, for a hierarchy without controllers, "name=systemd".
std::string controllersAmong(std::string_view options, const std::map<std::string, std::string, std::less<>>& paths) {
  for (const auto& [controllers, path] : paths) {
    if (controllers.empty()) continue;
    const auto wanted = split(controllers, ',');
    if (std::ranges::all_of(wanted, [&](std::string_view one) { return listed(options, one, ','); }))
      return controllers;
  }
  return {};
}

}  // namespace

std::string_view name(CgroupLayout layout) {
  switch (layout) {
    case CgroupLayout::none: return "none";
    case CgroupLayout::v1: return "v1";
    case CgroupLayout::v2: return "v2";
    case CgroupLayout::hybrid: return "hybrid";
  }
  return "none";
}

const CgroupHierarchy* CgroupProbe::find(std::string_view controller) const {
  for (const CgroupHierarchy& hierarchy : hierarchies) {
    if (listed(hierarchy.controllers, controller, hierarchy.v2 ? ' ' : ',')) return &hierarchy;
  }
  return nullptr;
}

bool CgroupProbe::usable(std::string_view controller) const {
  const CgroupHierarchy* hierarchy = find(controller);
  return hierarchy != nullptr && hierarchy->make_child.ok() && hierarchy->procs_writable;
}

CgroupProbe parseCgroups(std::string_view mountinfo, std::string_view self_cgroup) {
  CgroupProbe probe;
  const auto paths = ownPaths(self_cgroup);
  for (const std::string_view line : split(mountinfo, '\n')) {
    // id parent major:minor root mount-point options [optional fields] - type source super-options
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 6 || after.size() < 3) continue;
    const bool v2 = after[0] == "cgroup2";
    if (!v2 && after[0] != "cgroup") continue;
    CgroupHierarchy hierarchy{.v2 = v2};
    if (!v2) hierarchy.controllers = controllersAmong(after[2], paths);
    const auto own = paths.find(hierarchy.controllers);
    if (own == paths.end() || (!v2 && (hierarchy.controllers.empty() || hierarchy.controllers.starts_with("name=")))) {
      continue;
    }
    hierarchy.directory = directoryOf(unescapeMountField(before[4]), unescapeMountField(before[3]), own->second);
    probe.hierarchies.push_back(std::move(hierarchy));
  }
  const auto is_v2 = [](const CgroupHierarchy& hierarchy) { return hierarchy.v2; };
  const bool any_v2 = std::ranges::any_of(probe.hierarchies, is_v2);
  const bool any_v1 = !std::ranges::all_of(probe.hierarchies, is_v2);
  if (any_v1) {
    probe.layout = any_v2 ? CgroupLayout::hybrid : CgroupLayout::v1;
  } else if (any_v2) {
    probe.layout = CgroupLayout::v2;
  }
  return probe;
}

}  // namespace caisson::sys
