// How a launch grows with what a policy holds and with the number of sandboxes that live beside it.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "rows.h"
#include "statistics.h"

namespace bench {

struct GrowthPoint {
  unsigned count = 0;  ///< of the things
  Summary ms;
};

struct GrowthResult {
  std::string what;
  std::vector<GrowthPoint> points;  ///< rising counts, the first being 0
  std::string absent;               ///< why it could not be measured

  /// Microseconds that one more of them costs, over the whole range.
  [[nodiscard]] double each() const;
  /// What one more costs in the upper part of the range against the lower: 1 is a straight line. 0 when the whole
  /// cost drowns in the spread of the measurement, so that nothing can be said.
  [[nodiscard]] double bend() const;
};

std::vector<GrowthResult> measureGrowth(const Options& options, const Scratch& scratch);

}  // namespace bench
