// Points in time that survive a clock which is set, by a person or by a time server.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_document.h"

namespace caisson::service {

/// A moment on the wall clock and on the clock since boot, in seconds. Nobody can set the latter, so it decides until a
/// reboot; after one only the wall clock is left.
struct Instant {
  std::int64_t wall = 0, boot = 0;
  std::string boot_id;  ///< empty: unknown

  static Instant now();
  [[nodiscard]] Instant after(std::int64_t seconds) const { return {wall + seconds, boot + seconds, boot_id}; }
  /// Seconds from `earlier` to this moment; negative if `earlier` is later.
  [[nodiscard]] std::int64_t since(const Instant& earlier) const;
};

Json describeInstant(const Instant& instant);
/// Undoes describeInstant(). Without such a value: a moment long ago.
Instant readInstant(const Json* value);

}  // namespace caisson::service
