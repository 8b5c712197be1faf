#include "sys/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace caisson::sys {
namespace {

constexpr int kMaxEvents = 32;

std::uint64_t tag(int descriptor, std::uint32_t generation) {
  return (static_cast<std::uint64_t>(generation) << 32) | static_cast<std::uint32_t>(descriptor);
}

}  // namespace

Result<void> EventLoop::open() {
  epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail(sysError(Stage::launch, "epoll_create1", "", errno, "raise the limit on open files"));
  return {};
}

void EventLoop::on(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready) {
  auto watch = std::make_shared<Watch>();
  watch->ready = std::move(ready);
  watch->generation = ++last_generation_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag(descriptor, watch->generation);
  const int operation = watches_.contains(descriptor) ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), operation, descriptor, &event) != 0 && errno == ENOENT) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
  }
  watches_[descriptor] = std::move(watch);
}

void EventLoop::remove(int descriptor) {
  if (descriptor < 0 || watches_.erase(descriptor) == 0) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
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
  const auto now = Clock::now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first <= now) {
    const auto [id, due] = std::move(timers_.begin()->second);
    timer_index_.erase(id);
    timers_.erase(timers_.begin());
    due();
  }
}

void EventLoop::run() {
  stopped_ = false;
  while (!stopped_) {
    epoll_event events[kMaxEvents];
    const int count = ::epoll_wait(epoll_.get(), events, kMaxEvents, waitMs());
    runDueTimers();
    for (int i = 0; i < count && !stopped_; ++i) {
      const auto found = watches_.find(static_cast<int>(static_cast<std::uint32_t>(events[i].data.u64)));
      // A descriptor that was closed since, and its number used again, is another one.
      if (found == watches_.end() || found->second->generation != events[i].data.u64 >> 32) continue;
      const std::shared_ptr<Watch> watch = found->second;
      watch->ready(events[i].events);
    }
    if (after_turn_) after_turn_();
  }
}

}  // namespace caisson::sys
