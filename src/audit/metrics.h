// Counters and histograms over all runs of this user, from all processes.
//
// Stored in one small file beside the log, so they survive pruning. A writer counts in memory and adds to the file
// later (Log::handOver), so a launch does not wait. They are statistics, not evidence: a killed process loses what it
// had not added, and a damaged file or one of another version restarts at zero.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "audit/event.h"
#include "base/error.h"

namespace caisson::audit {

/// Upper bounds of a histogram's buckets; one more bucket counts larger values.
inline constexpr std::array<double, 12> kSecondsBounds = {0.002, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                          0.5,   1,     5,    30,    120,  600};
inline constexpr double kMiB = 1 << 20;
inline constexpr std::array<double, 12> kBytesBounds = {kMiB,        4 * kMiB,    16 * kMiB,   32 * kMiB,
                                                        64 * kMiB,   128 * kMiB,  256 * kMiB,  512 * kMiB,
                                                        1024 * kMiB, 2048 * kMiB, 4096 * kMiB, 8192 * kMiB};

struct Histogram {
  std::array<std::uint64_t, 13> buckets{};  ///< not cumulative
  std::uint64_t count = 0;
  double sum = 0;

  /// Counts one value.
  void add(double value, const std::array<double, 12>& bounds);
  /// The upper bound of the bucket that holds the quantile; for larger values, the largest bound. 0 without values.
  [[nodiscard]] double quantile(double part, const std::array<double, 12>& bounds) const;
  void add(const Histogram& other);
};

/// Sandboxes created in one second or minute.
struct Created {
  std::uint64_t time = 0;  ///< in its unit, since 1970
  std::uint64_t count = 0;
};

struct Metrics {
  std::uint64_t since = 0;                    ///< seconds since 1970
  std::array<std::uint64_t, 64> events{};     ///< by EventType
  std::array<std::uint64_t, 4> severities{};  ///< by Severity
  std::array<std::uint64_t, 8> outcomes{};    ///< by Measures::outcome
  Histogram lifetime;                         ///< seconds
  Histogram cpu;                              ///< seconds, user and system
  Histogram memory;                           ///< peak bytes
  std::uint64_t read_bytes = 0, written_bytes = 0, network_bytes = 0;
  std::uint64_t syscalls_blocked = 0;  ///< every one; the log only samples a flood
  std::uint64_t network_denied = 0;    ///< denied requests of any kind: connections, redirects, rebinding, names
  std::array<Created, 60> seconds{};   ///< the last minute, by second modulo 60
  std::array<Created, 61> minutes{};   ///< the last hour, by minute modulo 61

  [[nodiscard]] std::uint64_t of(EventType type) const { return events[static_cast<std::size_t>(type)]; }
  /// Sandboxes created per second, over the 60 seconds that end at `now` (seconds since 1970).
  [[nodiscard]] double rateOfLastMinute(std::uint64_t now) const;
  /// The same over the last 60 minutes, also per second.
  [[nodiscard]] double rateOfLastHour(std::uint64_t now) const;
};

/// Adds one event; `now` is in seconds since 1970.
void count(Metrics& metrics, const Event& event, std::uint64_t now);
/// Adds `other` to `into`.
void merge(Metrics& into, const Metrics& other);

/// All zero if there is no file yet, or one that is damaged or of another version. Creates a missing directory.
Result<Metrics> readMetrics(const std::string& directory);

/// Adds `counted` to the file in `directory`, whose name in messages is `path`. Ignores failures, since these are only
/// statistics; gives up if another process holds the file for 50 ms.
void addMetrics(int directory, const std::string& path, const Metrics& counted);

}  // namespace caisson::audit
