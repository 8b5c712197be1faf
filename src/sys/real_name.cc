#include "sys/real_name.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <optional>

#include "base/text.h"
#include "sys/descriptor_path.h"
#include "sys/fd.h"

namespace caisson::sys {
namespace {

constexpr int kMaxFollowed = 40;  // as the kernel

std::optional<std::string> targetOf(const std::string& path) {
  char target[4096];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  if (length < 0) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(length));
}

std::deque<std::string> partsIn(const std::string& path) {
  std::deque<std::string> parts;
  for (const std::string_view part : split(path, '/')) {
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

/// Resolves the path part by part.
RealName resolveParts(const std::string& path) {
  RealName found;
  std::deque<std::string> parts = partsIn(path);
  bool missing = false;
  for (int links = 0; !parts.empty();) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    if (part == "..") {
      if (missing) found.links.push_back(found.path);
      found.path.resize(found.path.empty() ? 0 : found.path.rfind('/'));
      missing = false;
      continue;
    }
    const std::string next = found.path + "/" + part;
    const auto target = targetOf(next);
    missing = !target && errno == ENOENT;
    if (!target || ++links > kMaxFollowed) {
      found.path = next;
      continue;
    }
    found.links.push_back(next);
    if (target->starts_with('/')) found.path.clear();
    std::deque<std::string> added = partsIn(*target);
    parts.insert(parts.begin(), added.begin(), added.end());
  }
  return found;
}

}  // namespace

RealName realName(const std::string& path) {
  std::string rest;
  // Few calls for the usual case: no links, and only the last parts missing.
  for (std::string there = path; there.size() > 1 && there[0] == '/';) {
    const Fd fd(::open(there.c_str(), O_PATH | O_CLOEXEC));
    const std::string known = fd ? canonicalPath(fd.get()).value_or("") : "";
    if (!known.empty() && known == there) return {known + rest, {}};
    if (!known.empty() || targetOf(there)) return resolveParts(path);
    const std::size_t slash = there.rfind('/');
    if (slash + 1 < there.size()) rest = there.substr(slash) + rest;
    there.erase(slash);
  }
  return {rest, {}};
}

}  // namespace caisson::sys
