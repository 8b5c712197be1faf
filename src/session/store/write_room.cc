#include "session/store/write_room.h"

#include <algorithm>

namespace caisson::session {

std::uint64_t WriteRoom::measure(const Measure& measure) {
  const std::lock_guard lock(mutex_);
  measureLocked(measure);
  return *left_;
}

void WriteRoom::measureLocked(const Measure& measure) {
  const std::uint64_t left = measure();
  left_ = left - std::min(left, pending_);
  since_ = 0;
  stale_ = false;
}

bool WriteRoom::reserve(std::uint64_t bytes, std::uint64_t unmeasured, const Measure& measure) {
  const std::lock_guard lock(mutex_);
  if (!left_ || stale_ || *left_ < bytes || since_ + bytes > unmeasured) measureLocked(measure);
  if (bytes > *left_) return false;
  *left_ -= bytes;
  since_ += bytes;
  pending_ += bytes;
  return true;
}

bool WriteRoom::take(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!left_ || bytes > *left_) return false;
  *left_ -= bytes;
  since_ += bytes;
  pending_ += bytes;
  return true;
}

void WriteRoom::written(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  pending_ -= std::min(pending_, bytes);
}

void WriteRoom::giveBack(std::uint64_t bytes, const std::function<bool()>& remove) {
  const std::lock_guard lock(mutex_);
  if (remove() && left_) *left_ += bytes;
}

void WriteRoom::forget() {
  const std::lock_guard lock(mutex_);
  stale_ = true;
}

std::uint64_t WriteRoom::left() {
  const std::lock_guard lock(mutex_);
  return left_.value_or(0);
}

std::shared_ptr<WriteRoom> WriteRooms::of(const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(rooms_, [](const auto& one) { return one.second.expired(); });
  auto& known = rooms_[id];
  auto room = known.lock();
  if (!room) known = room = std::make_shared<WriteRoom>();
  return room;
}

}  // namespace caisson::session
