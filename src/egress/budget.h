// Limits DNS lookups: queries per minute, and bytes of free label text per minute.
//
// The owner of an allowed domain sees every name looked up below it, so each new name leaks its free part. The limit
// for such a tunnel is 1 kB per minute. New text is charged in full; choosing among names already looked up carries a
// few bits, which the query limit bounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_set>

namespace caisson::egress {

class LookupBudget {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Verdict : std::uint8_t { fine, too_many, too_much_text };

  /// In any minute at most the saved amount plus the refill: 800 bytes. Queries for known names account for the rest.
  static constexpr double kTextAtOnce = 400, kTextPerMinute = 400;

  explicit LookupBudget(std::uint64_t per_minute) : per_minute_(per_minute) {}

  /// Counts a lookup of `name`, whose first `free_bytes` are not fixed by a pattern, and charges them if the name is
  /// new. If the verdict is not `fine`, do not look it up.
  Verdict charge(const std::string& name, std::size_t free_bytes, Clock::time_point now);

 private:
  std::uint64_t per_minute_;
  std::uint64_t questions_ = 0;  ///< in the current minute
  double text_ = kTextAtOnce;    ///< bytes of new text that may be sent now
  Clock::time_point minute_{}, refilled_{};
  std::unordered_set<std::string> known_;  ///< the first 1024 names that were charged; others are charged each time
};

}  // namespace caisson::egress
