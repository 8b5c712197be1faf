// Files and directories that the host moves while a sandbox runs.
//
// An overlay that has a name in its cache serves the moved file under it, with what is written to the file later, and a
// moved directory with all that is created in it. So the old name is hidden if the new place is hidden, or is not
// shown at all.
#include <chrono>
#include <utility>

#include "supervise/workspace/secret_watch.h"

namespace caisson::supervise {
namespace {

/// The kernel reports the new name directly after the old one.
constexpr auto kPairWithin = std::chrono::milliseconds(1);
constexpr std::size_t kMaxMoved = 10'000, kMaxNames = 16;

}  // namespace

void SecretWatch::onMovedFrom(const std::string& path, std::uint32_t cookie) {
  if (!options_.keeps_names(path)) return;
  moving_[cookie] = path;
  if (moves_timer_ == 0) moves_timer_ = loop_.at(Clock::now() + kPairWithin, [this] { onMovedOut(); });
}

void SecretWatch::onMovedTo(const std::string& path, std::uint32_t cookie) {
  const auto moving = moving_.find(cookie);
  if (moving == moving_.end()) return;
  const std::string old = std::move(moving_.extract(moving).mapped());
  const auto known = moved_.find(path);
  const bool full = moved_.size() >= kMaxMoved || (known != moved_.end() && known->second.size() >= kMaxNames);
  if (full || !options_.exposes(path)) {
    hideOldName(old);
    return hideOldNamesOf(old);
  }
  std::set<std::string> names{old};
  if (auto before = moved_.extract(old)) names.merge(before.mapped());
  for (auto at = moved_.lower_bound(old + "/"); at != moved_.end() && at->first.starts_with(old + "/");) {
    moved_[path + at->first.substr(old.size())].merge(at->second);
    at = moved_.erase(at);
  }
  moved_[path].merge(names);
}

void SecretWatch::onMovedOut() {
  moves_timer_ = 0;
  for (const auto& [cookie, path] : std::exchange(moving_, {})) {
    hideOldName(path);
    hideOldNamesOf(path);
    for (auto at = moved_.lower_bound(path + "/"); at != moved_.end() && at->first.starts_with(path + "/"); ++at) {
      for (const std::string& old : at->second) hideOldName(old);
    }
  }
  maskNext();
}

void SecretWatch::hideOldName(const std::string& path) {
  if (!options_.keeps_names(path) || !options_.exposes(path) || isMasking(path)) return;
  if (old_names_.insert(path).second) queue(path);
}

void SecretWatch::hideOldNamesOf(const std::string& path) {
  if (moved_.empty()) return;
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const auto moved = moved_.find(path.substr(0, end));
    if (moved != moved_.end()) {
      for (const std::string& old : moved->second) hideOldName(end == std::string::npos ? old : old + path.substr(end));
    }
    if (end == std::string::npos) return;
  }
}

}  // namespace caisson::supervise
