#include "mcp/sandbox/output_budget.h"

#include <algorithm>

#include "mcp/sandbox/execution.h"

namespace caisson::mcp {

std::size_t OutputBudget::take(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  wanted = std::min(wanted, limit_);
  while (taken_ + wanted > limit_ && !ended_.empty()) {
    if (const auto oldest = ended_.front().lock()) oldest->dropOutput();
    ended_.pop_front();
  }
  const std::size_t taken = taken_;
  const std::size_t room = limit_ - std::min(limit_, taken);
  taken_ += std::min(wanted, room);
  return std::min(wanted, room);
}

void OutputBudget::noteEnd(const std::shared_ptr<Execution>& execution) {
  const std::lock_guard lock(mutex_);
  std::erase_if(ended_, [](const std::weak_ptr<Execution>& one) { return one.expired(); });
  ended_.push_back(execution);
}

}  // namespace caisson::mcp
