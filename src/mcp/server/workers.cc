#include "mcp/server/workers.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace caisson::mcp {
namespace {
constexpr std::chrono::seconds kIdle{10};
}

Workers::~Workers() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  wake_.notify_all();
  gone_.wait(lock, [this] { return threads_ == 0; });
}

void Workers::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() <= idle_ || threads_ >= most_) {
      wake_.notify_one();
      return;
    }
    ++threads_;
  }
  try {
    std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
    // If no thread can be created, the existing ones run the task; if there are none, it runs here.
    bool alone = false;
    {
      const std::lock_guard lock(mutex_);
      alone = --threads_ == 0;
      if (alone) ++threads_;
    }
    if (alone) work();
  }
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (tasks_.empty()) {
      ++idle_;
      wake_.wait_for(lock, kIdle, [this] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) break;
    }
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
  --threads_;
  gone_.notify_all();
}

}  // namespace caisson::mcp
