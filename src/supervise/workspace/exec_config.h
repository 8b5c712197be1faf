// After a run in a `rw` workspace: files that the host would execute (hooks, editor tasks) and that the run created are
// moved to a quarantine directory. The kernel cannot forbid names that do not exist yet.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Stores, before the program starts, which directories it can write to and what is protected in them now: a run that
/// is killed is checked by the next one.
Result<void> storeStateBefore(const plan::Plan& plan);
/// Adds the sandbox's first process to that.
Result<void> storeInit(const plan::Plan& plan, pid_t init);
/// Instead of quarantineNewFiles(), if the program never ran.
void forgetStateBefore(const plan::Plan& plan);

/// Does this check for runs whose caisson was killed, and for sessions whose sandbox ended: a session's supervisor is
/// confined and cannot. Must precede the search of a workspace. Returns notices.
std::vector<std::string> finishKilledRuns();

/// Moves such files out of the workspace of a plan with `guarded` set; else does nothing. Nothing of the run may be
/// alive any more. What was moved, or could not be, is in the result.
///
/// The workspace is searched again after files were moved: a file can be protected for several reasons, and a new link
/// that is moved away can hide an old one that leads to the same file.
void quarantineNewFiles(const plan::Plan& plan, RunResult& result);

inline constexpr int kMaxSearches = 8;
/// Calls `round` until it returns 0, at most kMaxSearches times; false: it never did.
bool repeatUntilZero(const std::function<std::size_t()>& round);

}  // namespace caisson::supervise
