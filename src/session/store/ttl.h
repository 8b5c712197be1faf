// The time to live that a caller gives a session.
#pragma once

#include "base/error.h"

namespace caisson::session {

/// An error unless it is above zero and at most ten years. `call` and `object`: for the error.
inline Result<void> checkTtl(std::string_view call, std::string_view object, double seconds) {
  constexpr double kMaxTtl = 10.0 * 366 * 86400;
  if (seconds > 0 && seconds <= kMaxTtl) return {};  // false for NaN
  return fail(plainError(Stage::usage, call, object, "not a usable time", "give a time above zero, such as 30m or 2h"));
}

}  // namespace caisson::session
