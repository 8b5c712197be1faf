// A single-threaded event loop: calls functions when a descriptor is ready or a time is reached.
//
//   EventLoop loop;
//   loop.on(socket, POLLIN, [&](short events) { ... });
//   loop.at(Clock::now() + 5s, [&] { ... });
//   loop.run();                                  // until stop()
//
// A callback may add and remove entries, including its own. It must not block on anything that a payload controls. Uses
// poll(2): it accepts regular files, needs no descriptor, and a payload of the same user cannot exhaust it, unlike
// epoll's per-user watch limit.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace caisson::sys {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using TimerId = std::uint64_t;  ///< never 0

  /// Calls `ready` with the poll events of `descriptor`, level-triggered; POLLERR and POLLHUP are always reported. A
  /// second call for the same descriptor replaces `events` and `ready`.
  void on(int descriptor, short events, std::function<void(short)> ready);
  /// Call it before closing the descriptor. Does nothing for an unknown one.
  void remove(int descriptor);

  /// Calls `due` once, at `time` or soon after.
  TimerId at(Clock::time_point time, std::function<void()> due);
  /// Does nothing for an expired timer and for 0.
  void cancel(TimerId timer);

  /// Sets the function that is called after each round of callbacks, also after the last one; replaces the previous.
  void afterTurn(std::function<void()> function) { after_turn_ = std::move(function); }
  /// Calls callbacks until one of them calls stop(), which also skips the callbacks left in this round.
  void run();
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    short events = 0;
    std::function<void(short)> ready;
  };
  using Timers = std::multimap<Clock::time_point, std::pair<TimerId, std::function<void()>>>;

  void runDueTimers();
  /// Calls the callbacks of descriptors that poll() reported.
  void callReady();
  /// Time until the next timer for poll(2); -1 without timers.
  [[nodiscard]] int waitMs() const;

  std::map<int, std::shared_ptr<Watch>> watches_;
  /// The watches of the current round, and their pollfd entries in the same order.
  std::vector<std::shared_ptr<Watch>> polled_;
  std::vector<pollfd> polls_;
  bool changed_ = false;  ///< watches_ differs from polled_
  Timers timers_;
  std::map<TimerId, Timers::iterator> timer_index_;
  TimerId last_timer_ = 0;
  std::function<void()> after_turn_;
  bool stopped_ = false;
};

}  // namespace caisson::sys
