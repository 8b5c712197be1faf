// A bounded number of threads for blocking work. They are created on demand and exit when idle.
//
// Tasks may belong to a caller. Each caller gets a share of the threads, and some are reserved for tasks without a
// caller, so tasks that block delay only others of the same caller. Callers take turns.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace caisson::http {

struct WorkerLimits {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t threads = 1;
  std::size_t queue = 0;  ///< tasks that wait for a thread
  std::size_t threads_per_caller = kNone;
  std::size_t queue_per_caller = kNone;
  std::size_t reserved = 0;  ///< threads for tasks without a caller; fewer than `threads`
};

class Workers {
 public:
  static constexpr std::size_t kNoLimit = WorkerLimits::kNone;
  explicit Workers(const WorkerLimits& limits) : limits_(limits) {}
  /// At most `threads` run at a time; at most `queue` tasks wait for one.
  Workers(std::size_t threads, std::size_t queue) : Workers(WorkerLimits{.threads = threads, .queue = queue}) {}
  /// Waits until every task is done.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the task in a thread. False if too many wait already, or there is no thread and none can be created.
  [[nodiscard]] bool run(std::function<void()> task, const std::string& caller = {}) { return start(task, caller); }
  /// The same, but runs a task that no thread takes here.
  void runOrCall(std::function<void()> task);
  /// Tasks that run or wait.
  [[nodiscard]] std::size_t load() const;

 private:
  struct Task {
    std::function<void()> run;
    std::string caller;
  };
  struct Caller {
    std::size_t running = 0;  ///< or in `tasks_`
    std::deque<std::function<void()>> waiting;
  };

  /// Takes the task only if a thread will run it.
  bool start(std::function<void()>& task, const std::string& caller);
  /// Queues a task that may run now. False if it cannot be queued.
  bool queueTask(std::function<void()>& task, const std::string& caller);
  bool mayRun(const Caller& caller) const;
  /// After the end of a caller's task: lets the next one run.
  void finish(const std::string& caller);
  void work();

  WorkerLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable wake_, gone_;
  std::deque<Task> tasks_;                 ///< the next free thread takes the first
  std::map<std::string, Caller> callers_;  ///< that have tasks
  std::deque<std::string> turns_;          ///< callers with waiting tasks, each once
  std::size_t callers_running_ = 0, waiting_ = 0;
  std::size_t threads_ = 0, idle_ = 0;
  bool ending_ = false;
};

}  // namespace caisson::http
