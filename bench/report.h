// Prints the tables and the verdicts on the targets, and writes the same as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "audit.h"
#include "growth.h"
#include "launch.h"
#include "memory.h"
#include "work.h"

namespace bench {

struct Results {
  std::string host;           ///< kernel, processors, user
  std::string layers;         ///< the layers that caisson reports as in force, as JSON; empty without the binary
  double busy_elsewhere = 0;  ///< the largest observed share of the processors that other programs used
  std::vector<Row> rows;
  std::vector<LaunchResult> launches;
  std::vector<ThroughputResult> throughput;
  std::vector<MemoryResult> memory;
  std::optional<AuditResult> audit;
  std::vector<WorkResult> work;
  std::vector<GrowthResult> growth;
};

void printLaunches(const Results& results);
void printThroughput(const Results& results);
void printMemory(const Results& results);
void printAudit(const Results& results);
void printWork(const Results& results);
void printGrowth(const Results& results);

/// Prints one line for every target that this run could evaluate.
void printTargets(const Results& results);
/// Prints whether this run is too noisy to be quoted.
void printNoise(const Results& results);

std::string toJson(const Results& results);

}  // namespace bench
