// Notices at the end of a run: discarded changes, and explanations of failures.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "audit/event.h"
#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// What a payload changed in the workspace overlay.
struct ChangedFiles {
  static constexpr std::size_t kMaxNames = 20;

  std::size_t count = 0;
  bool complete = true;            ///< false: there may be more
  std::vector<std::string> names;  ///< the first ones, relative to the workspace
};

/// `upper` is a directory that the payload wrote: walked by descriptor, no link followed, bounded in entries and depth.
/// `since`: only what was changed at or after that time; a file that was made and removed again leaves no trace.
ChangedFiles findChangedFiles(int upper, std::size_t max_entries = 100'000, std::optional<timespec> since = {});

/// Adds the notice that the changes were discarded.
void noteDiscardedChanges(const ChangedFiles& changes, const plan::Plan& plan, RunResult& result);

/// The changes as fields of an audit event.
audit::Fields describeChanges(const ChangedFiles& changes);

/// If a command failed without network and looks like it needs it, adds a notice. A hint, not a protection. `session`:
/// that of the command, for the advice; empty for a run.
void explainMissingNetwork(policy::NetworkMode mode, const std::vector<std::string>& command, std::string_view session,
                           RunResult& result);

}  // namespace caisson::supervise
