// A single-threaded event loop on epoll that notifies watchers when a descriptor is ready.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::egress {

using Clock = std::chrono::steady_clock;

class Watcher {
 public:
  /// `descriptor`, which was passed to Loop::watch(), is ready. `events`: EPOLL* flags.
  virtual void onEvents(int descriptor, std::uint32_t events) = 0;

 protected:
  ~Watcher() = default;
};

class Loop {
 public:
  /// Creates the epoll descriptor; call before anything else.
  Result<void> open();
  /// Level-triggered unless `events` has EPOLLET. A second call changes the events. False if epoll_ctl fails.
  bool watch(int descriptor, std::uint32_t events, Watcher* watcher);
  /// Call it before closing the descriptor. Drops events that were already fetched for it.
  void forget(int descriptor);
  /// Waits at most `milliseconds` (-1: forever) and calls the watchers.
  void turn(int milliseconds);

 private:
  struct Entry {
    Watcher* watcher = nullptr;
    std::uint32_t generation = 0, events = 0;
  };

  sys::Fd epoll_;
  std::vector<Entry> entries_;  // by descriptor
};

}  // namespace caisson::egress
