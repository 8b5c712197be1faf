#include "egress/request_log.h"

#include <algorithm>
#include <utility>

#include "egress/address.h"
#include "egress/host_name.h"

namespace caisson::egress {
namespace {

Category categoryOfRange(std::string_view range) {
  if (range.empty()) return Category::host;
  if (range == "cloud metadata") return Category::metadata;
  if (range == "loopback" || range == "this host") return Category::loopback;
  if (range == "private" || range == "carrier-grade NAT" || range == "link-local") return Category::private_network;
  return Category::reserved;
}

bool isPowerOfTen(std::uint64_t count) {
  while (count >= 10 && count % 10 == 0) count /= 10;
  return count == 1;
}

std::uint64_t milliseconds(RequestLog::WallClock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return since > 0 ? static_cast<std::uint64_t>(since) : 0;
}

}  // namespace

Category categoryOf(const Request& request, std::string_view blocked_range) {
  if (!blocked_range.empty()) return categoryOfRange(blocked_range);
  if (const auto address = Address::parse(request.host)) return categoryOfRange(blockedRange(*address));
  if (isMetadataName(request.host)) return Category::metadata;
  return isLocalName(request.host) ? Category::local_name : Category::host;
}

RequestLog::Group& RequestLog::groupOf(Category category, bool allowed) {
  Group& group = groups_[static_cast<std::size_t>(category) + (allowed ? kCategories : 0)];
  group.overflow.allowed = allowed;
  group.overflow.category = category;
  return group;
}

void RequestLog::overflow(Group& group, std::uint64_t count, WallClock::time_point now) {
  group.overflow.last_ms = milliseconds(now);
  if (group.overflow.count == 0) group.overflow.first_ms = group.overflow.last_ms;
  group.overflow.count += count;
}

void RequestLog::addUnknown(std::uint64_t count, WallClock::time_point now) {
  overflow(groupOf(Category::unknown, false), count, now);
}

std::optional<Request> RequestLog::add(Request request, WallClock::time_point now, bool has_room) {
  Group& group = groupOf(request.category, request.allowed);
  // Permitted queries are counted by name, so that a flood of them leaves the records to connections.
  const bool each = request.allowed && request.operation != kResolve;
  if (has_room && each && ++allowed_ <= kMaxAllowed) return request;
  const Key key{request.operation, request.host, request.port};
  auto found = group.kinds.find(key);
  if (found == group.kinds.end()) {
    if (!has_room || group.kinds.size() >= kMaxKinds) {
      overflow(group, 1, now);
      group.overflow.sent += request.sent;
      group.overflow.received += request.received;
      return std::nullopt;
    }
    found = group.kinds.emplace(key, Kind{}).first;
  }
  Kind& kind = found->second;
  request.count = ++kind.count;
  // Reports the first and every power of ten at once, the rest through takeRepetitions().
  if (has_room && isPowerOfTen(kind.count)) {
    kind.reported = kind.count;
    return request;
  }
  kind.latest = std::move(request);
  return std::nullopt;
}

bool RequestLog::hasOverflow() const {
  return std::ranges::any_of(groups_, [](const Group& group) { return group.overflow.count > 0; });
}

std::vector<Overflow> RequestLog::takeOverflows() {
  std::vector<Overflow> taken;
  for (Group& group : groups_) {
    if (group.overflow.count > 0) taken.push_back(std::exchange(group.overflow, {}));
  }
  return taken;
}

std::vector<Request> RequestLog::takeRepetitions() {
  std::vector<Request> taken;
  for (Group& group : groups_) {
    for (auto& [key, kind] : group.kinds) {
      if (kind.reported == kind.count) continue;
      kind.reported = kind.count;
      taken.push_back(std::exchange(kind.latest, {}));
    }
  }
  return taken;
}

}  // namespace caisson::egress
