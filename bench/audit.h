// The cost of the audit log: events that one core writes, and its share of a launch.
#pragma once

#include <optional>
#include <string>

#include "options.h"
#include "scratch.h"

namespace bench {

struct AuditResult {
  std::string absent;            ///< why the events were not measured; empty when they were
  double events_per_second = 0;  ///< median of three stretches, one writer on one core, each event acknowledged
};

/// Runs audit_events, which exists if the benchmark was built with the engine.
AuditResult measureAudit(const Options& options, const Scratch& scratch);

}  // namespace bench
