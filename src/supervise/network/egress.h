// A run's record of its egress: settings from the plan, denials and counters for the result.
#pragma once

#include <optional>

#include "audit/log.h"
#include "caisson/run.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "plan/plan.h"

namespace caisson::supervise {

egress::Settings egressSettings(const plan::Plan& plan);

/// Writes one request to the audit log. `error`: why an allowed connection failed. False: it is not in the log.
bool recordRequest(const egress::Request& request, audit::Log& log, const std::string& sandbox_id,
                   std::string_view error = {});

class EgressRecord {
 public:
  EgressRecord() = default;
  /// For a sandbox whose egress reported that it is ready; `capture` describes what it captures.
  explicit EgressRecord(std::string capture) : capture_(std::move(capture)) {}

  /// `log`: the audit log for every request, or null.
  void take(const egress::Report& report, audit::Log* log, const std::string& sandbox_id);
  /// Whether everything passed to take() is in the log.
  [[nodiscard]] bool recordedAll() const { return recorded_all_; }
  /// Why there is no egress, if it reported a reason.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  void fill(RunResult& result) const;
  /// For one of several commands: what was reported since the last call.
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
