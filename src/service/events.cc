#include "service/events.h"

#include <ctime>

#include "base/time_text.h"

namespace caisson::service {

std::string timeText() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return utcText(
      std::chrono::system_clock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)));
}

Json describeEvent(const LifecycleEvent& event) {
  return {{"id", event.id},
          {"type", event.type},
          {"time", event.time},
          {"sandbox_id", event.sandbox},
          {"data", event.data}};
}

void Events::publish(std::string type, const std::string& sandbox, const std::string& owner, Json data) {
  std::vector<Notify> notify;
  LifecycleEvent event;
  {
    const std::lock_guard lock(mutex_);
    event = {++last_, std::move(type), timeText(), sandbox, owner, std::move(data)};
    events_.push_back(event);
    if (events_.size() > kKept) events_.pop_front();
    for (const auto& [id, one] : subscribers_) notify.push_back(one);
  }
  for (const Notify& one : notify) one(event);
}

std::vector<LifecycleEvent> Events::after(std::uint64_t id, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<LifecycleEvent> found;
  for (const LifecycleEvent& event : events_) {
    if (event.id <= id) continue;
    if (found.size() >= most) break;
    found.push_back(event);
  }
  return found;
}

std::uint64_t Events::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::shared_ptr<void> Events::subscribe(Notify notify) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = ++next_subscriber_;
  subscribers_.emplace(id, std::move(notify));
  return std::shared_ptr<void>(nullptr, [this, id](void*) {
    const std::lock_guard guard(mutex_);
    subscribers_.erase(id);
  });
}

}  // namespace caisson::service
