#include "egress/budget.h"

#include <algorithm>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxKnown = 1024;  // choosing one of them leaks at most ten bits per query

}  // namespace

LookupBudget::Verdict LookupBudget::charge(const std::string& name, std::size_t free_bytes, Clock::time_point now) {
  if (now - minute_ >= std::chrono::minutes(1)) {
    minute_ = now;
    questions_ = 0;
  }
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - refilled_).count();
  text_ = std::min(kTextAtOnce, text_ + minutes * kTextPerMinute);
  refilled_ = now;
  if (questions_ >= per_minute_) return Verdict::too_many;
  ++questions_;
  if (free_bytes == 0 || known_.contains(name)) return Verdict::fine;
  if (static_cast<double>(free_bytes) > text_) return Verdict::too_much_text;
  text_ -= static_cast<double>(free_bytes);
  if (known_.size() < kMaxKnown) known_.insert(name);
  return Verdict::fine;
}

}  // namespace caisson::egress
