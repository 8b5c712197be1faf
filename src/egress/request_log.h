// Which requests are reported one by one and which only as a number: a sandbox makes as many as it likes, and the audit
// log has room for some thousands.
//
// Every request is accounted for. The first ones of each category get a record of their own, repetitions of a recorded
// one are counted in its further records, and the rest is counted in an Overflow per category. Categories have separate
// budgets, so a thousand refused names cannot hide one attempt at a metadata service.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "egress/records.h"

namespace caisson::egress {

/// The category of a refused request: by the range that refused it, or by its host where that is an address or the name
/// of a metadata service.
Category categoryOf(const Request& request, std::string_view blocked_range);

class RequestLog {
 public:
  using WallClock = std::chrono::system_clock;

  static constexpr std::uint64_t kMaxAllowed = 20'000;  ///< reports of allowed requests that each get a record
  static constexpr std::size_t kMaxKinds = 1000;        ///< distinct ones per category, refused or beyond kMaxAllowed

  /// The record to send for `request` now; nothing where it is a repetition or does not fit. `has_room`: whether the
  /// receiver can keep another record.
  std::optional<Request> add(Request request, WallClock::time_point now, bool has_room = true);
  /// Counts refusals of which nothing but the number is known.
  void addUnknown(std::uint64_t count, WallClock::time_point now);
  /// Whether takeOverflows() has something.
  [[nodiscard]] bool hasOverflow() const;
  /// What was only counted since the last call. The counts of all calls and the records add up to all requests.
  std::vector<Overflow> takeOverflows();
  /// A record with the present count for each kind that was repeated since its last record.
  std::vector<Request> takeRepetitions();

 private:
  struct Kind {
    Request latest;
    std::uint64_t count = 0, reported = 0;
  };
  using Key = std::tuple<std::string, std::string, std::uint16_t>;  // operation, host, port
  struct Group {
    std::map<Key, Kind> kinds;
    Overflow overflow;
  };

  [[nodiscard]] Group& groupOf(Category category, bool allowed);
  static void overflow(Group& group, std::uint64_t count, WallClock::time_point now);

  std::array<Group, 2 * kCategories> groups_;  // refused, then allowed ones
  std::uint64_t allowed_ = 0;
};

}  // namespace caisson::egress
