// Probes the host: the facts a plan is made from.
#pragma once

#include <functional>

#include "plan/plan.h"
#include "sys/cgroup.h"
#include "sys/root_dir.h"

namespace caisson::host {

struct CollectOptions {
  /// If no cgroup can be created, first move this process into a scope of the user's service manager.
  bool own_scope = false;
  sys::CgroupBase* found = nullptr;         ///< gets the cgroup base, so that the caller need not search again
  const sys::RootDir* workspace = nullptr;  ///< the directory that is meant, instead of what has the path now
  /// Called now and then while the workspace is searched, with the number of entries so far; may be empty.
  std::function<void(std::size_t entries)> progress;
  bool keep_index = false;  ///< write what the search of the workspace found out, for the next one
  bool will_run = false;    ///< a program will run: register it as a writer of a workspace that is written directly
};

/// Collects facts for `policy`, as seen by this process. A missing feature is a fact, not an error. Only reads, unless
/// the options say otherwise.
plan::HostFacts collectFacts(const policy::Policy& policy, const CollectOptions& options = {});

/// Whether a file system is mounted below the directory.
bool hasMountsBelow(const std::string& directory);

/// The processors on which this process may run, up to number 1023; none if that cannot be read.
std::vector<std::uint32_t> usableProcessors();

}  // namespace caisson::host
