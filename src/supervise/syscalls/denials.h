// Explains denials: the rule, the object, and what would allow it.
#pragma once

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// Explains a system call that the filter blocked. `call` has the name and the arguments.
Denial explainRefusedCall(const plan::Plan& plan, const Violation& call);

/// Adds a denial and a violation for a process killed by SIGSYS: without a listener, a call of a foreign architecture
/// kills it.
void addForeignArchitectureDenial(RunResult& result);

/// Says why the sandbox was killed. `many`: `call` was the last of too many, else it alone was grave enough.
std::string describeEscape(const plan::Plan& plan, const Violation& call, bool many);

/// The directory in memory that held most.
struct FilesInMemory {
  std::string directory;
  std::uint64_t bytes = 0;
};

/// Adds denials for the result's limit, if its outcome is `limit`, and for output that was cut; not for the limit on
/// processes. `full`: the size-limited directory that was full.
void explainLimits(const plan::Plan& plan, const std::string& full, const FilesInMemory& files_in_memory,
                   RunResult& result);

}  // namespace caisson::supervise
