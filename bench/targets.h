// Compares the project's performance targets with one run's results.
#pragma once

#include <string>
#include <vector>

#include "report.h"

namespace bench {

struct Verdict {
  std::string target;
  double value = 0, limit = 0;
  bool at_least = false;  ///< the value must reach the limit instead of staying below it
  bool noisy = false;     ///< the samples vary too much to evaluate the target
  [[nodiscard]] bool met() const { return at_least ? value >= limit : value <= limit; }
};

std::vector<Verdict> judge(const Results& results);

/// True if other programs used the processors, or the launch table varied too much for its ratios to be meaningful;
/// `why` names the reason.
bool isNoisy(const Results& results, std::string& why);

/// True when caisson ran without any cgroup: a stricter target applies then.
bool ranWithoutCgroup(const std::string& layers);

}  // namespace bench
