// What a run keeps of its egress: settings from the plan, denials and counters for the result.
#pragma once

#include <optional>

#include "audit/log.h"
#include "caisson/run.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "plan/plan.h"

namespace caisson::supervise {

egress::Settings egressSettings(const plan::Plan& plan);

class EgressRecord {
 public:
  EgressRecord() = default;
  /// For a sandbox whose egress has reported that it is ready: what it captures, in words.
  explicit EgressRecord(std::string capture) : capture_(std::move(capture)) {}

  /// `log`: where every request goes on record (N8), or null.
  void take(const egress::Report& report, audit::Log* log, const std::string& sandbox_id);
  /// Whether everything that take() was given is in its log.
  [[nodiscard]] bool recordedAll() const { return recorded_all_; }
  /// Why there is no egress, when it said so.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  void fill(RunResult& result) const;
  /// For one command of several: what was reported since the last call.
  void fillAndReset(RunResult& result);

 private:
  std::vector<Denial> denials_;
  std::uint64_t omitted_ = 0;
  std::string capture_;
  egress::Totals totals_, earlier_;
  std::optional<Error> failure_;
  bool recorded_all_ = true;
};

}  // namespace caisson::supervise
