// Whether a child of our own cgroup can be made.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "host/probe.h"
#include "sys/kernel_file.h"
#include "sys/remove_tree.h"

namespace caisson::host {
namespace {

using sys::CgroupHierarchy, sys::readKernelFile;

void tryChild(CgroupHierarchy& hierarchy) {
  if (hierarchy.directory.empty()) return;
  if (hierarchy.v2) {
    hierarchy.controllers = readKernelFile((hierarchy.directory + "/cgroup.controllers").c_str());
    hierarchy.subtree_control = readKernelFile((hierarchy.directory + "/cgroup.subtree_control").c_str());
  }
  const std::string procs = hierarchy.directory + "/cgroup.procs";
  hierarchy.procs_writable = ::faccessat(AT_FDCWD, procs.c_str(), W_OK, AT_EACCESS) == 0;
  if (::faccessat(AT_FDCWD, hierarchy.directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    hierarchy.make_child = {errno};
    return;
  }
  const std::optional<std::string> name = sys::unpredictableName();
  if (!name) return;
  std::string child = hierarchy.directory;
  child.append("/").append(*name);
  hierarchy.make_child = {::mkdir(child.c_str(), 0700) == 0 ? 0 : errno};
  if (hierarchy.make_child.ok()) (void)::rmdir(child.c_str());
}

}  // namespace

sys::CgroupProbe probeCgroups() {
  sys::CgroupProbe probe =
      sys::parseCgroups(readKernelFile("/proc/self/mountinfo"), readKernelFile("/proc/self/cgroup"));
  for (CgroupHierarchy& hierarchy : probe.hierarchies) tryChild(hierarchy);
  return probe;
}

}  // namespace caisson::host
