// Learn mode: from what a run was refused, the smallest policy that would let it through. A proposal to read: nothing
// is ever widened by it.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"
#include "policy/model.h"

namespace caisson::cli {

struct Proposal {
  std::string policy;             ///< a policy file in TOML that extends what the run started from
  std::vector<std::string> diff;  ///< the same as lines to read: "+ key = value    # why"
};

/// `base` is what the run started from, as `extends` names it: a profile or the path of a file.
Proposal proposePolicy(const policy::Policy& policy, const std::string& base, const RunResult& result);

}  // namespace caisson::cli
