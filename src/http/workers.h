// A bounded number of threads for blocking work. They are created on demand and exit when idle.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace caisson::http {

class Workers {
 public:
  /// At most `threads` run at a time; at most `queue` tasks wait for one.
  Workers(std::size_t threads, std::size_t queue) : max_threads_(threads), max_queue_(queue) {}
  /// Waits until every task is done.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the task in a thread. False if too many wait already, or no thread can be created.
  [[nodiscard]] bool run(std::function<void()> task);
  /// Tasks that run or wait.
  [[nodiscard]] std::size_t load() const;

 private:
  void work();

  std::size_t max_threads_, max_queue_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, gone_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0, idle_ = 0;
  bool ending_ = false;
};

}  // namespace caisson::http
