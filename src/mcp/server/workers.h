// Threads that serve calls. They are created on demand, up to a limit, and exit when idle.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace caisson::mcp {

class Workers {
 public:
  explicit Workers(std::size_t most) : most_(most) {}
  /// Waits until every task is done.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the task in a thread; queues it while all threads are busy. If there is none and none can be created, runs it
  /// and further tasks here, and returns after ten seconds without one.
  void run(std::function<void()> task);

 private:
  /// A thread's loop: runs tasks, and returns after ten seconds without one.
  void work();

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable gone_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace caisson::mcp
