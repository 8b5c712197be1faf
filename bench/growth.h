// How launch time grows with the size of a policy and with the number of running sandboxes.
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

  /// Microseconds per additional entry, over the whole range.
  [[nodiscard]] double each() const;
  /// The cost of an additional entry in the upper part of the range, relative to the lower: 1 is a straight line. 0 if
  /// the whole cost is within the spread of the measurement.
  [[nodiscard]] double bend() const;
};

std::vector<GrowthResult> measureGrowth(const Options& options, const Scratch& scratch);

}  // namespace bench
