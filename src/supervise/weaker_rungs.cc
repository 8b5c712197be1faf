#include "supervise/weaker_rungs.h"

#include "base/error.h"

namespace caisson::supervise {

using isolation::ProcRung;

void noteRungs(const plan::Plan& plan, const isolation::Message& prepared, std::map<std::string, std::string>& layers,
               std::vector<std::string>& warnings) {
  if (plan.namespaces.time && !prepared.time_namespace) {
    layers["time_namespace"] = "missing";
    warnings.emplace_back("no time namespace: the host's uptime is visible");
  }
  if (prepared.quota_error != 0) {
    layers["kernel_quotas"] = "missing: " + errnoName(prepared.quota_error);
    warnings.push_back(
        "kernel quotas cannot be written here (/proc/sys/user: " + errnoName(prepared.quota_error) +
        "): the program can use up its caller's inotify instances and watches, and its TCP buffers are as large as the "
        "host's");
  }
  if (prepared.hostname_error != 0) {
    layers["hostname"] = "kept: " + errnoName(prepared.hostname_error);
    warnings.push_back("the host name cannot be set here (sethostname: " + errnoName(prepared.hostname_error) +
                       "): the program sees the caller's");
  }
  if (prepared.proc == ProcRung::subset) {
    layers["proc"] = "proc_subset: own processes only";
    warnings.emplace_back(
        "proc_subset: parts of /proc are covered here, so the program's has its processes and nothing else: no "
        "/proc/meminfo, cpuinfo, stat, sys");
  }
  if (prepared.proc == ProcRung::bound) {
    layers["proc"] = "proc_bound: the caller's, read-only";
    warnings.emplace_back(
        "proc_bound: parts of /proc are covered here, so the program sees the caller's. Not protected: the names, "
        "command lines, limits, mounts and network tables of other processes. Their memory, environment, open files "
        "and "
        "directories stay denied");
  }
}

void noteUnmapped(const std::vector<std::string>& paths, std::vector<std::string>& warnings) {
  for (const std::string& path : paths) {
    warnings.push_back(path + ": its file system has no idmapped mounts, so its files keep their owner: the program " +
                       "reads what everyone may read, and changes no file of root's");
  }
}

}  // namespace caisson::supervise
