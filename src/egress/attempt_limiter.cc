#include "egress/attempt_limiter.h"

namespace caisson::egress {

void MinuteCount::advance(Clock::time_point now) {
  const auto size = static_cast<std::int64_t>(seconds_.size());
  const auto second = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  if (second - second_ >= size) {
    seconds_.fill(0);
    total_ = 0;
    second_ = second;
  }
  while (second_ < second) {
    std::uint32_t& oldest = seconds_[static_cast<std::size_t>(++second_ % size)];
    total_ -= oldest;
    oldest = 0;
  }
}

void MinuteCount::add(Clock::time_point now) {
  advance(now);
  ++seconds_[static_cast<std::size_t>(second_ % static_cast<std::int64_t>(seconds_.size()))];
  ++total_;
}

std::uint32_t MinuteCount::count(Clock::time_point now) {
  advance(now);
  return total_;
}

}  // namespace caisson::egress
