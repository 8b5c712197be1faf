// A run's record of its egress: settings from the plan, denials and counters for the result.
#pragma once

#include <optional>

#include "audit/log.h"
#include "caisson/run.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// The settings of the egress process for a plan that has one.
egress::Settings egressSettings(const plan::Plan& plan);

/// Writes one request to the audit log. `error`: why an allowed connection failed. False: it is not in the log.
bool recordRequest(const egress::Request& request, audit::Log& log, const std::string& sandbox_id,
                   std::string_view error = {});

class EgressRecord {
 public:
  EgressRecord() = default;
  /// For a sandbox whose egress reported that it is ready; `capture` describes what it captures.
  explicit EgressRecord(std::string capture) : capture_(std::move(capture)) {}

  /// Counts a report of the egress, and records it in the audit log, unless `log` is null.
  void take(const egress::Report& report, audit::Log* log, const std::string& sandbox_id);
  /// False once a report could not be written to the log that take() got. Stays true without a log.
  [[nodiscard]] bool recordedAll() const { return recorded_all_; }
  /// Why the egress could not start, if it reported that.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// Adds denials, notices, warnings and layers to the result, and sets its network usage.
  void fill(RunResult& result) const;
  /// fill() for one of several commands: only what was reported since the last call.
  void fillAndReset(RunResult& result);

 private:
  std::vector<Denial> denials_;
  std::vector<std::string> unreachable_;
  std::uint64_t omitted_ = 0;
  std::string capture_;
  egress::Totals totals_, earlier_;
  std::optional<Error> failure_;
  bool recorded_all_ = true;
};

}  // namespace caisson::supervise
