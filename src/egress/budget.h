// How much may be looked up: questions per minute, and bytes of free label text per minute.
//
// Whoever runs the server of a permitted domain reads the names that are looked up below it, so every lookup of a new
// name sends its free part out. SPEC N6 allows a tunnel 1 kB a minute. New text is charged in full; choosing among
// names that were looked up before carries a few bits, which the limit on questions bounds.
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

  /// In any minute at most what was saved up and what flows in: 800 bytes. Questions about known names make the rest.
  static constexpr double kTextAtOnce = 400, kTextPerMinute = 400;

  explicit LookupBudget(std::uint64_t per_minute) : per_minute_(per_minute) {}

  /// Charges a lookup of `name`, whose first `free_bytes` no pattern fixes.
  Verdict charge(const std::string& name, std::size_t free_bytes, Clock::time_point now);

 private:
  std::uint64_t per_minute_;
  std::uint64_t questions_ = 0;
  double text_ = kTextAtOnce;  ///< bytes that may still go out now
  Clock::time_point minute_{}, refilled_{};
  std::unordered_set<std::string> known_;
};

}  // namespace caisson::egress
