#include "session/commit/resulting_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <deque>
#include <vector>

#include "base/path_parts.h"
#include "base/text.h"
#include "policy/rules/git_config_shown.h"
#include "policy/rules/name_pattern.h"
#include "policy/rules/protected_files.h"
#include "sys/fd.h"

namespace caisson::session {
namespace {

using sys::FileType;

constexpr int kMaxLinks = 40;  // as the kernel
constexpr std::size_t kMaxConfig = 64 * 1024;

constexpr const char* kLeadsOut = "a link that leads out of the workspace";
constexpr const char* kBroken = "a link whose way is missing in part";

std::string below(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

/// `..` after a name means another directory once that name is a link; a later commit could make it one.
bool climbsAfterName(const std::vector<std::string_view>& parts) {
  bool named = false;
  for (const std::string_view part : parts) {
    if (part == "..") {
      if (named) return true;
    } else if (part != ".") {
      named = true;
    }
  }
  return false;
}

}  // namespace

ResultingTree::Node ResultingTree::lookUp(const std::string& path) {
  if (const auto found = changes_.find(path); found != changes_.end()) return found->second;
  const auto there = real_.look(path);
  if (!there || !*there) return {};
  Node node{(*there)->type, {}};
  if (node.type != FileType::link) return node;
  std::string name;
  const auto parent = real_.parentOf(path, name);
  if (!parent) return {};
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(*parent, name.c_str(), target, sizeof(target));
  if (length < 0) return {};
  node.target.assign(target, static_cast<std::size_t>(length));
  return node;
}

std::string ResultingTree::whyHeld(const std::string& path, std::string_view target) {
  if (target.starts_with('/')) return kLeadsOut;
  const std::vector<std::string_view> own = policy::splitParts(target, '/');
  std::vector<std::string> at;
  const std::string directory = directoryOf(path);  // the parts are views of it
  for (const std::string_view part : policy::splitParts(directory, '/')) at.emplace_back(part);
  std::deque<std::string> rest(own.begin(), own.end());
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (at.empty()) return kLeadsOut;
      at.pop_back();
      continue;
    }
    at.push_back(part);
    const Node node = lookUp(joined(at, "/"));
    if (node.type == FileType::directory) continue;
    if (node.type == FileType::link) {
      if (++links > kMaxLinks) return kBroken;
      if (node.target.starts_with('/')) return kLeadsOut;
      at.pop_back();
      const auto parts = policy::splitParts(node.target, '/');
      rest.insert(rest.begin(), parts.begin(), parts.end());
      continue;
    }
    if (!rest.empty()) return kBroken;
  }
  return climbsAfterName(own) ? "a link with `..` after a name, which another link can lead elsewhere" : "";
}

void RepositoryShapes::addPresent(const std::string& path) {
  const std::string directory = directoryOf(path);
  present_[directory].insert(policy::foldName(directory.empty() ? path : path.substr(directory.size() + 1)));
}

const RepositoryShapes::Shape& RepositoryShapes::shapeOf(const std::string& directory) {
  const auto [found, added] = shapes_.try_emplace(directory);
  if (!added) return found->second;
  // Git looks for these very names, and the file system decides whether case matters.
  const auto real = [&](std::string_view folded) {
    const auto there = real_.look(below(directory, folded == "head" ? "HEAD" : folded));
    return there && *there;
  };
  const auto made = present_.find(directory);
  const auto either = [&](std::string_view folded) {
    return (made != present_.end() && made->second.contains(std::string(folded))) || real(folded);
  };
  found->second.now = policy::hasRepositoryShape(real) || hasRepositoryConfig(directory);
  found->second.after = found->second.now || policy::hasRepositoryShape(either);
  return found->second;
}

bool RepositoryShapes::hasRepositoryConfig(const std::string& directory) {
  std::string name;
  const auto parent = real_.parentOf(below(directory, "config"), name);
  if (!parent) return false;
  const sys::Fd fd(::openat(*parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::string text(kMaxConfig, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  return got > 0 && policy::isRepositoryConfig(std::string_view(text).substr(0, static_cast<std::size_t>(got)));
}

bool RepositoryShapes::isHeld(const std::string& path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::string_view rest = std::string_view(path).substr(begin);
    const std::string directory = begin == 0 ? "" : path.substr(0, begin - 1);
    const std::size_t slash = directory.rfind('/');
    const bool named = policy::foldName(slash == std::string::npos ? directory : directory.substr(slash + 1)) == ".git";
    if (!named && policy::isRepositoryMember(rest)) {
      const Shape& shape = shapeOf(directory);
      if (shape.now ? !policy::isRepositoryData(rest) : shape.after) return true;
    }
    const std::size_t end = path.find('/', begin);
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return false;
}

bool RepositoryShapes::isInside(const std::string& path) {
  for (std::string directory = directoryOf(path); !directory.empty(); directory = directoryOf(directory)) {
    if (policy::foldName(directory.substr(directory.rfind('/') + 1)) == ".git" || shapeOf(directory).after) return true;
  }
  return shapeOf("").after;
}

}  // namespace caisson::session
