// Medians and spread of a sample. Robust figures only: one scheduler tick must not change a result.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

struct Summary {
  std::size_t count = 0;
  double minimum = 0, median = 0, p99 = 0;
  double spread = 0;     ///< interquartile range / median
  double deviation = 0;  ///< median absolute deviation / median
  double drift = 0;      ///< |median of the second half - median of the first half| / median
};

/// `sample` in the order it was measured.
Summary summarize(const std::vector<double>& sample);

/// Of a copy, so that callers keep the order of measurement.
double median(std::vector<double> sample);

}  // namespace bench
