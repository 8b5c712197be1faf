// Work that a caller need not wait for, such as syncing to the disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace caisson::session {

/// One thread, which starts with the first task. Thread-safe.
class LaterQueue {
 public:
  LaterQueue() = default;
  /// Does what is left, at once.
  ~LaterQueue();
  LaterQueue(const LaterQueue&) = delete;
  LaterQueue& operator=(const LaterQueue&) = delete;

  /// Runs the task a moment later; here and now if the queue is full or no thread can be created.
  void add(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace caisson::session
