#include "host/link_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <deque>
#include <vector>

#include "base/path_parts.h"
#include "base/text.h"
#include "host/git_programs.h"
#include "isolation/child.h"
#include "policy/rules/name_pattern.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr int kMaxLinkSteps = 40;  // as the kernel

enum class Entry : std::uint8_t { missing, link, other };

Entry readEntry(const sys::RootDir& root, const std::string& path, std::string& target) {
  const long opened = isolation::openBeneath(root.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return Entry::missing;
  const sys::Fd fd(static_cast<int>(opened));
  char text[PATH_MAX];
  const ssize_t length = ::readlinkat(fd.get(), "", text, sizeof(text));
  if (length < 0) return Entry::other;
  target.assign(text, static_cast<std::size_t>(length));
  return Entry::link;
}

}  // namespace

std::optional<std::string> linkEnd(const sys::RootDir& root, const std::string& workspace, const std::string& link,
                                   std::vector<std::string>* passed) {
  std::vector<std::string> at;  // the parts of an absolute path
  std::deque<std::string> rest;
  const std::string whole = workspace + "/" + link;
  for (const std::string_view part : policy::splitParts(whole, '/')) rest.emplace_back(part);
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (!at.empty()) at.pop_back();
      continue;
    }
    at.push_back(part);
    const auto inside = pathBelow(workspace, "/" + joined(at, "/"));
    if (!inside || inside->empty()) continue;
    std::string target;
    const Entry entry = readEntry(root, *inside, target);
    if (entry == Entry::missing) return std::nullopt;
    if (entry == Entry::other) continue;
    if (++links > kMaxLinkSteps) return std::nullopt;
    if (passed != nullptr && *inside != link) passed->push_back(*inside);
    target.starts_with('/') ? at.clear() : at.pop_back();
    const auto parts = policy::splitParts(target, '/');
    rest.insert(rest.begin(), parts.begin(), parts.end());
  }
  auto end = pathBelow(workspace, "/" + joined(at, "/"));
  if (!end || end->empty() || *end == link) return std::nullopt;
  return end;
}

}  // namespace caisson::host
