// One thread, one epoll: runs functions when a descriptor is ready or a time has come.
//
//   EventLoop loop;
//   loop.on(socket, EPOLLIN, [&](std::uint32_t events) { ... });
//   loop.at(Clock::now() + 5s, [&] { ... });
//   loop.run();                                  // until stop()
//
// A function may add and remove entries, its own included. It must not wait for anything that a payload controls.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using TimerId = std::uint64_t;  ///< 0 is never one

  Result<void> open();

  /// Calls `ready` with the epoll events of `descriptor`, level-triggered. Calling it again replaces both.
  void on(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready);
  /// Before the descriptor is closed.
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
    std::function<void(std::uint32_t)> ready;
    std::uint32_t generation = 0;
  };
  using Timers = std::multimap<Clock::time_point, std::pair<TimerId, std::function<void()>>>;

  void runDueTimers();
  [[nodiscard]] int waitMs() const;

  Fd epoll_;
  std::map<int, std::shared_ptr<Watch>> watches_;
  Timers timers_;
  std::map<TimerId, Timers::iterator> timer_index_;
  TimerId last_timer_ = 0;
  std::uint32_t last_generation_ = 0;
  std::function<void()> after_turn_;
  bool stopped_ = false;
};

}  // namespace caisson::sys
