// Learn mode: computes from the denials of a run the smallest policy that would allow it. A proposal to review;
// learning itself widens nothing.
#pragma once

#include <string>
#include <vector>

#include "caisson/run.h"
#include "policy/model.h"

namespace caisson::cli {

/// One key that the run needs to be wider.
struct Lesson {
  std::string key;
  std::string value;  ///< as TOML
  std::string reason;
};

struct Proposal {
  std::string policy;             ///< a TOML policy file that extends the policy of the run
  std::vector<std::string> diff;  ///< the same as readable lines: "+ key = value    # why"
  std::vector<Lesson> lessons;
  std::vector<std::string> refused;  ///< what was denied, and is not proposed
  std::vector<std::string> remarks;  ///< what was used, and advice
};

/// `base` is the policy of the run, as `extends` names it: a profile or the path of a file.
Proposal proposePolicy(const policy::Policy& policy, const std::string& base, const RunResult& result);

}  // namespace caisson::cli
