#include "http/workers.h"

#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace caisson::http {
namespace {
constexpr std::chrono::seconds kIdleThread{10};
}

Workers::~Workers() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  wake_.notify_all();
  gone_.wait(lock, [this] { return threads_ == 0; });
}

void Workers::runOrCall(std::function<void()> task) {
  if (!start(task)) task();
}

bool Workers::start(std::function<void()>& task) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() < idle_) {
    tasks_.push_back(std::move(task));
    wake_.notify_one();
    return true;
  }
  if (threads_ < max_threads_) {
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
    } catch (const std::system_error&) {
      if (threads_ == 0) return false;
    }
  } else if (tasks_.size() >= max_queue_) {
    return false;
  }
  tasks_.push_back(std::move(task));
  return true;
}

std::size_t Workers::load() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size() + threads_ - idle_;
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (tasks_.empty()) {
      ++idle_;
      wake_.wait_for(lock, kIdleThread, [this] { return ending_ || !tasks_.empty(); });
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

}  // namespace caisson::http
