#include "mcp/sandbox/denied_requests.h"

#include <algorithm>

namespace caisson::mcp {

void DeniedRequests::add(const std::string& request, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(until_, [&](const auto& entry) { return entry.second <= now; });
  until_[request] = now + kKept;
  if (until_.size() <= kMax) return;
  const auto time = [](const auto& entry) { return entry.second; };
  until_.erase(std::ranges::min_element(until_, {}, time));
}

std::optional<std::chrono::seconds> DeniedRequests::left(const std::string& request, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto place = until_.find(request);
  if (place == until_.end() || place->second <= now) return std::nullopt;
  return std::chrono::ceil<std::chrono::seconds>(place->second - now);
}

}  // namespace caisson::mcp
