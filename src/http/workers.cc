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
  if (!start(task, {})) task();
}

bool Workers::mayRun(const Caller& caller) const {
  return caller.running < limits_.threads_per_caller && callers_running_ < limits_.threads - limits_.reserved;
}

bool Workers::start(std::function<void()>& task, const std::string& caller) {
  const std::lock_guard lock(mutex_);
  if (caller.empty()) return queueTask(task, caller);
  Caller& own = callers_[caller];
  if (own.waiting.empty() && mayRun(own)) {
    const bool queued = queueTask(task, caller);
    own.running += queued ? 1 : 0;
    callers_running_ += queued ? 1 : 0;
    if (own.running == 0) callers_.erase(caller);
    return queued;
  }
  const bool fits = waiting_ < limits_.queue && own.waiting.size() < limits_.queue_per_caller;
  if (fits) {
    if (own.waiting.empty()) turns_.push_back(caller);
    own.waiting.push_back(std::move(task));
    ++waiting_;
  }
  if (own.running == 0 && own.waiting.empty()) callers_.erase(caller);
  return fits;
}

void Workers::finish(const std::string& caller) {
  if (caller.empty()) return;
  --callers_running_;
  const auto ended = callers_.find(caller);
  if (--ended->second.running == 0 && ended->second.waiting.empty()) callers_.erase(ended);
  for (std::size_t left = turns_.size(); left > 0; --left) {
    const std::string name = std::move(turns_.front());
    turns_.pop_front();
    Caller& next = callers_[name];
    const bool chosen = mayRun(next);
    if (chosen) {
      tasks_.push_back({std::move(next.waiting.front()), name});  // the thread that calls this is free
      next.waiting.pop_front();
      ++next.running;
      ++callers_running_;
      --waiting_;
    }
    if (!next.waiting.empty()) turns_.push_back(name);
    if (chosen) return;
  }
}

bool Workers::queueTask(std::function<void()>& task, const std::string& caller) {
  if (tasks_.size() < idle_) {
    tasks_.push_back({std::move(task), caller});
    wake_.notify_one();
    return true;
  }
  if (threads_ < limits_.threads) {
    try {
      std::thread([this] { work(); }).detach();
      ++threads_;
    } catch (const std::system_error&) {
      if (threads_ == 0) return false;
    }
  } else if (caller.empty() && tasks_.size() >= limits_.queue) {
    return false;
  }
  tasks_.push_back({std::move(task), caller});
  return true;
}

std::size_t Workers::load() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size() + waiting_ + threads_ - idle_;
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
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task.run();
    task.run = nullptr;
    lock.lock();
    finish(task.caller);
  }
  --threads_;
  gone_.notify_all();
}

}  // namespace caisson::http
