// One thread: runs functions when a descriptor is ready or a time has come.
//
//   EventLoop loop;
//   loop.on(socket, POLLIN, [&](short events) { ... });
//   loop.at(Clock::now() + 5s, [&] { ... });
//   loop.run();                                  // until stop()
//
// A function may add and remove entries, its own included. It must not wait for anything that a payload controls.
// Uses poll(2): it accepts regular files, needs no descriptor, and no payload of the same user can exhaust it, unlike
// the per-user account of epoll watches.
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
  using TimerId = std::uint64_t;  ///< 0 is never one

  /// Calls `ready` with the poll events of `descriptor`, level-triggered. Calling it again replaces both.
  void on(int descriptor, short events, std::function<void(short)> ready);
  /// Before the descriptor is closed. Fine for one that is not watched.
  void remove(int descriptor);

  TimerId at(Clock::time_point time, std::function<void()> due);
  /// Fine for one that is over, and for 0.
  void cancel(TimerId timer);

  /// Called after each round of functions.
  void afterTurn(std::function<void()> function) { after_turn_ = std::move(function); }
  void run();
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    short events = 0;
    std::function<void(short)> ready;
  };
  using Timers = std::multimap<Clock::time_point, std::pair<TimerId, std::function<void()>>>;

  void runDueTimers();
  void callReady();
  [[nodiscard]] int waitMs() const;

  std::map<int, std::shared_ptr<Watch>> watches_;
  /// What the current round polled: the watches, and the entries for poll() in the same order.
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
