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
  static constexpr std::size_t kNoLimit = ~std::size_t{0};
  /// At most `threads` run at a time; at most `queue` tasks wait for one.
  Workers(std::size_t threads, std::size_t queue) : max_threads_(threads), max_queue_(queue) {}
  /// Waits until every task is done.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the task in a thread. False if too many wait already, or there is no thread and none can be created.
  [[nodiscard]] bool run(std::function<void()> task) { return start(task); }
  /// The same, but runs a task that no thread takes here.
  void runOrCall(std::function<void()> task);
  /// Tasks that run or wait.
  [[nodiscard]] std::size_t load() const;

 private:
  /// Takes the task only if a thread will run it.
  bool start(std::function<void()>& task);
  void work();

  std::size_t max_threads_, max_queue_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, gone_;
  std::deque<std::function<void()>> tasks_;
  std::size_t threads_ = 0, idle_ = 0;
  bool ending_ = false;
};

}  // namespace caisson::http
