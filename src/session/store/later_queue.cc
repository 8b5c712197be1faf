#include "session/store/later_queue.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace caisson::session {
namespace {

constexpr std::size_t kMaxTasks = 256;
// The caller's next request usually follows at once, and would wait for the disk, too.
constexpr std::chrono::milliseconds kPause{200};

}  // namespace

LaterQueue::~LaterQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LaterQueue::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
    }
    if (thread_.joinable() && tasks_.size() < kMaxTasks) {
      tasks_.push_back(std::move(task));
      changed_.notify_all();
      return;
    }
  }
  task();
}

void LaterQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    changed_.wait_for(lock, kPause, [this] { return ending_; });
    std::deque<std::function<void()>> tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (const auto& task : tasks) task();
    lock.lock();
  }
}

}  // namespace caisson::session
