// The cost of one launch of `true`, and launches per second.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "rows.h"
#include "statistics.h"

namespace bench {

struct LaunchResult {
  const Row* row = nullptr;
  Summary ms;
  double to_floor = 0;  ///< ratio of medians; 0 without a floor
  unsigned failures = 0;
};

/// Round-robin, in an order shuffled in every round: a launch also pays for kernel clean-up of its predecessor (network
/// namespaces are destroyed later, on a work queue), so predecessors must vary.
std::vector<LaunchResult> measureLaunches(const std::vector<Row>& rows, const Options& options);

struct ThroughputResult {
  const Row* row = nullptr;
  unsigned in_flight = 0;
  double per_second = 0;  ///< median of three stretches
};

std::vector<ThroughputResult> measureThroughput(const std::vector<Row>& rows, const Options& options);

}  // namespace bench
