#include "sys/event_loop.h"

#include <algorithm>

namespace caisson::sys {

void EventLoop::on(int descriptor, short events, std::function<void(short)> ready) {
  watches_[descriptor] = std::make_shared<Watch>(Watch{events, std::move(ready)});
  changed_ = true;
}

void EventLoop::remove(int descriptor) {
  if (watches_.erase(descriptor) != 0) changed_ = true;
}

EventLoop::TimerId EventLoop::at(Clock::time_point time, std::function<void()> due) {
  const TimerId id = ++last_timer_;
  timer_index_[id] = timers_.emplace(time, std::pair(id, std::move(due)));
  return id;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timer_index_.find(timer);
  if (found == timer_index_.end()) return;
  timers_.erase(found->second);
  timer_index_.erase(found);
}

int EventLoop::waitMs() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
}

void EventLoop::runDueTimers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first <= now) {
    const auto [id, due] = std::move(timers_.begin()->second);
    timer_index_.erase(id);
    timers_.erase(timers_.begin());
    due();
  }
}

void EventLoop::callReady() {
  for (std::size_t i = 0; i < polls_.size() && !stopped_; ++i) {
    if (polls_[i].revents == 0) continue;
    // The watch may have been removed, or its descriptor number reused, since poll().
    const auto found = watches_.find(polls_[i].fd);
    if (found == watches_.end() || found->second != polled_[i]) continue;
    const std::shared_ptr<Watch> watch = found->second;
    watch->ready(polls_[i].revents);
  }
}

void EventLoop::run() {
  stopped_ = false;
  while (!stopped_) {
    if (changed_ || polls_.size() != watches_.size()) {
      polls_.clear();
      polled_.clear();
      for (const auto& [descriptor, watch] : watches_) {
        polls_.push_back({descriptor, watch->events, 0});
        polled_.push_back(watch);
      }
      changed_ = false;
    }
    const int count = ::poll(polls_.data(), polls_.size(), waitMs());
    runDueTimers();
    if (count > 0) callReady();
    if (after_turn_) after_turn_();
  }
}

}  // namespace caisson::sys
