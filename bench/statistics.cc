#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bench {
namespace {

/// Nearest rank on a sorted, non-empty sample.
double quantile(const std::vector<double>& sorted, double q) {
  const double rank = std::ceil(q * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(sorted.size() - 1)))];
}

}  // namespace

double median(std::vector<double> sample) {
  if (sample.empty()) return 0;
  std::sort(sample.begin(), sample.end());
  const std::size_t middle = sample.size() / 2;
  return sample.size() % 2 == 1 ? sample[middle] : (sample[middle - 1] + sample[middle]) / 2;
}

Summary summarize(const std::vector<double>& sample) {
  Summary summary;
  summary.count = sample.size();
  if (sample.empty()) return summary;
  std::vector<double> sorted = sample;
  std::sort(sorted.begin(), sorted.end());
  summary.minimum = sorted.front();
  summary.median = median(sample);
  summary.p99 = quantile(sorted, 0.99);
  if (summary.median <= 0) return summary;

  summary.spread = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / summary.median;
  std::vector<double> distances;
  distances.reserve(sample.size());
  for (const double value : sample) distances.push_back(std::abs(value - summary.median));
  summary.deviation = median(std::move(distances)) / summary.median;

  const auto half = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  const double first = median({sample.begin(), half});
  const double second = median({half, sample.end()});
  summary.drift = std::abs(second - first) / summary.median;
  return summary;
}

}  // namespace bench
