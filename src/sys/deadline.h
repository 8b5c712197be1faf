// Conversion of times for poll(2).
#pragma once

#include <chrono>

namespace caisson::sys {

/// Rounded up; 0 for a deadline that has passed.
inline int millisecondsUntil(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left);
}

}  // namespace caisson::sys
