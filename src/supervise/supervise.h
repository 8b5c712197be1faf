// Supervises one running sandbox to its end: streams, signals, time, and the result.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/disk/disk_directories.h"
#include "sys/cgroup.h"

namespace caisson::supervise {

/// For a run that is a command of a session.
struct SuperviseOptions {
  std::string session;                           ///< its id, which the result and the audit log name; empty: a run
  const DiskDirectories* directories = nullptr;  ///< of the plan's directories on disk, which the caller keeps
  std::function<void(int stream, std::string_view)> on_output;  ///< also gets each piece of output within the limit
  std::optional<std::uint64_t> output_limit;                    ///< instead of the plan's
};

/// Launches `plan` and waits for its end. Everything that happens, including a failed set-up, is in the result.
/// `cgroups`: where to create cgroups, if the caller already found out.
RunResult supervise(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups = {},
                    const SuperviseOptions& options = {});

}  // namespace caisson::supervise
