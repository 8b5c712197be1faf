// Decides which requests are recorded individually and which are only counted: a sandbox can make any number, and the
// audit log has room for some thousands.
//
// Every request is counted. The first requests of each category get individual records, repetitions are counted in
// later records of the same request, and the rest in one Overflow per category. Categories have separate budgets, so a
// thousand denied names cannot hide one attempt at a metadata service.
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

/// The category of a denied request: from the range that denied it or, if that is empty, from its host: an address, a
/// metadata service's name, a local name, or any other.
Category categoryOf(const Request& request, std::string_view blocked_range);

class RequestLog {
 public:
  using WallClock = std::chrono::system_clock;

  static constexpr std::uint64_t kMaxAllowed = 20'000;  ///< allowed requests that get a record each, without queries
  static constexpr std::size_t kMaxKinds = 1000;        ///< distinct ones per category, denied or beyond kMaxAllowed

  /// Counts `request` and returns the record to send now: for the first kMaxAllowed allowed ones, and for the 1st,
  /// 10th, 100th ... of equal denied ones, DNS queries, or those beyond kMaxAllowed. nullopt: it was only counted.
  /// `has_room`: whether the receiver can take another record.
  std::optional<Request> add(Request request, WallClock::time_point now, bool has_room = true);
  /// Counts denials without details.
  void addUnknown(std::uint64_t count, WallClock::time_point now);
  /// Whether takeOverflows() would return anything.
  [[nodiscard]] bool hasOverflow() const;
  /// The requests since the last call that have no record and are not in takeRepetitions() either: too many kinds, no
  /// room, or addUnknown(). Together with the records, they add up to all requests.
  std::vector<Overflow> takeOverflows();
  /// A record with the current count for each request that was repeated since its last record.
  std::vector<Request> takeRepetitions();

 private:
  /// Equal requests: how many there were, and how many the last record showed.
  struct Kind {
    Request latest;
    std::uint64_t count = 0, reported = 0;
  };
  using Key = std::tuple<std::string, std::string, std::uint16_t>;  // operation, host, port
  struct Group {
    std::map<Key, Kind> kinds;
    Overflow overflow;
  };

  /// The counters of a category, separate for allowed and denied requests.
  [[nodiscard]] Group& groupOf(Category category, bool allowed);
  /// Adds to the count of the requests that get no record.
  static void overflow(Group& group, std::uint64_t count, WallClock::time_point now);

  std::array<Group, 2 * kCategories> groups_;  // denied, then allowed requests
  std::uint64_t allowed_ = 0;                  ///< allowed requests so far, without queries
};

}  // namespace caisson::egress
