// The cost of running inside: compile, start-up, many files, bare system calls.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "rows.h"
#include "statistics.h"

namespace bench {

struct Inside {
  Summary summary;
  double ratio = 0;       ///< median inside / median native
  double difference = 0;  ///< median inside - median native
};

struct WorkResult {
  std::string name;
  std::string unit;    ///< "ms", or "ns" for one system call
  std::string absent;  ///< why it was not measured
  Summary native;
  std::optional<Inside> floor;  ///< in the same namespaces and mounts without any filter: the kernel's share
  std::optional<Inside> caisson;
};

/// Native and inside in alternating batches on the same two CPUs at most (the policy limits a sandbox to two). A helper
/// inside measures the time of the program, so launches are not included.
std::vector<WorkResult> measureWork(const Options& options, const Scratch& scratch);

}  // namespace bench
