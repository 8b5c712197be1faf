#include "service/events.h"

#include <algorithm>
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
  constexpr std::size_t kFrame = 256;  ///< of the other members
  std::size_t bytes = writeJson(data).size();
  if (bytes > kMaxData) {
    data = Json{{"omitted_bytes", bytes}};
    bytes = 0;
  }
  std::vector<Notify> notify;
  LifecycleEvent event;
  {
    const std::lock_guard lock(mutex_);
    event = {++last_, std::move(type), timeText(), sandbox, owner, std::move(data), bytes + kFrame};
    Ring& ring = rings_[owner];
    ring.events.push_back(event);
    ++kept_;
    if (ring.events.size() > kKept) drop(ring);
    if (kept_ > kKeptInAll) {
      drop(std::max_element(rings_.begin(), rings_.end(), [](const auto& a, const auto& b) {
             return a.second.events.size() < b.second.events.size();
           })->second);
    }
    for (const auto& [id, one] : subscribers_) notify.push_back(one);
  }
  for (const Notify& one : notify) one(event);
}

void Events::drop(Ring& ring) {
  ring.lost.push_back(ring.events.front().id);
  ring.events.pop_front();
  --kept_;
  if (ring.lost.size() > kKept) ring.lost.pop_front();
}

std::vector<LifecycleEvent> Events::next(Position& position, std::size_t max_bytes,
                                         const std::function<bool(const std::string& owner)>& sees) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t lost = 0;
  std::vector<const LifecycleEvent*> found;
  for (const auto& [owner, ring] : rings_) {
    if (!sees(owner)) continue;
    if (!ring.lost.empty() && ring.lost.back() > position.event) {
      std::uint64_t& reported = position.lost[owner];
      const auto missed = std::upper_bound(ring.lost.begin(), ring.lost.end(), std::max(position.event, reported));
      lost += static_cast<std::uint64_t>(ring.lost.end() - missed);
      reported = ring.lost.back();
    }
    auto event = std::upper_bound(ring.events.begin(), ring.events.end(), position.event,
                                  [](std::uint64_t id, const LifecycleEvent& one) { return id < one.id; });
    for (std::size_t taken = 0; event != ring.events.end() && taken < kMaxAtOnce; ++event, ++taken)
      found.push_back(&*event);
  }
  std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < std::min(found.size(), kMaxAtOnce); ++count) {
    bytes += found[count]->bytes;
    if (count > 0 && bytes > max_bytes) break;
  }
  found.resize(count);
  std::vector<LifecycleEvent> events;
  if (lost > 0) events.push_back({position.event, "events.lost", timeText(), "", "", {{"count", lost}}, 0});
  for (const LifecycleEvent* event : found) events.push_back(*event);
  if (!found.empty()) position.event = found.back()->id;
  return events;
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
