// Limits what the connections of one sandbox leave behind on this machine.
//
// The side of a TCP connection that ends first keeps its local port for a minute (TIME_WAIT). A sandbox that could use
// up all of them would cut off every other sandbox, and the user, from the same host. A connection on which the host
// never sends a byte costs a handshake for nothing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace caisson::egress {

/// Counts events of the last 60 to 61 seconds.
class MinuteCount {
 public:
  using Clock = std::chrono::steady_clock;
  void add(Clock::time_point now);
  [[nodiscard]] std::uint32_t count(Clock::time_point now);

 private:
  /// Removes the seconds that are over.
  void advance(Clock::time_point now);

  std::array<std::uint32_t, 61> seconds_{};
  std::int64_t second_ = 0;  ///< the latest one
  std::uint32_t total_ = 0;
};

class AttemptLimiter {
 public:
  using Clock = MinuteCount::Clock;
  /// Connections a minute that may keep a port: a fifth of the usual range, of which the first end in the normal way,
  /// the others by a reset if that loses nothing.
  static constexpr std::uint32_t kLingering = 5600, kOrderly = 1400;
  /// Connections a minute on which the host never sent a byte, failed ones included.
  static constexpr std::uint32_t kFruitless = 4096;

  /// Whether another connection to a host may be made now. If not, it may be later.
  [[nodiscard]] bool mayConnect(Clock::time_point now) {
    return lingering_.count(now) < kLingering && fruitless_.count(now) < kFruitless;
  }
  /// Whether a connection that is closed before the host closes it should end in the normal way, else by a reset.
  [[nodiscard]] bool mayLinger(Clock::time_point now) { return lingering_.count(now) < kOrderly; }
  void countLingering(Clock::time_point now) { lingering_.add(now); }
  void countFruitless(Clock::time_point now) { fruitless_.add(now); }

 private:
  MinuteCount lingering_, fruitless_;
};

}  // namespace caisson::egress
