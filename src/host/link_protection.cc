#include "host/link_protection.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "plan/workspace.h"
#include "policy/rules/protected_links.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

using Place = policy::ProtectedLinks::Place;

constexpr std::size_t kMaxLinkedEntries = 100'000;  // below links, in all
constexpr int kMaxRounds = 40;                      // links in a row, as the kernel
constexpr int kMaxDepth = 4;                        // one more than the longest pattern has parts

class LinkProtection {
 public:
  LinkProtection(const sys::RootDir& root, const policy::ProtectedFiles& files, plan::WorkspaceScan& scan)
      : root_(root), files_(files), scan_(scan) {
    for (const auto& one : scan.protected_paths) known_.insert(one.path);
    for (const auto& link : scan.links) targets_.emplace(link.path, link.target);
  }

  void protect(const Place& place) {
    // The link may have a protected name only through another link: with `.config -> cfg`, cfg/fish has.
    if (!place.executed() && files_.match(place.name)) protectLink(place.source);
    const long opened = isolation::openBeneath(root_.descriptor(), place.path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return;  // it does not exist
    const sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return;
    const bool directory = S_ISDIR(status.st_mode);
    if (directory && place.file) return;
    if (place.path.empty() && place.executed()) {
      add(std::string(plan::kWholeWorkspace), true, place.source);
    } else if (!place.path.empty() && (place.executed() || files_.match(place.name))) {
      add(place.path, directory, place.source);
    } else if (directory && !place.executed()) {
      searchBelow(place.path, place.name, place.source, 0);
    }
  }

  /// Protects a link, if there is one. `source`: the link or configuration that leads to it.
  void protectLink(const std::string& path, const std::string& source = {}) {
    const auto link = targets_.find(path);
    if (link != targets_.end() && known_.insert(path).second) {
      const std::string& through = source == path ? std::string() : source;
      scan_.protected_paths.push_back({.path = path, .target = link->second, .through = through});
    }
  }

  /// Adds the first link on the way to `place` that no search has seen, since its directory cannot be listed.
  bool addHiddenLink(const Place& place) {
    if (open(place.path) != Opened::link) return false;
    for (std::size_t end = place.path.find('/');; end = place.path.find('/', end + 1)) {
      const std::string path = place.path.substr(0, end);
      std::string target;
      if (open(path, &target) != Opened::other) {
        if (target.empty() || !targets_.emplace(path, target).second) return false;
        scan_.links.push_back({.path = path, .target = target});
        return true;
      }
      if (end == std::string::npos) return false;
    }
  }

  /// Counts a directory that was searched in part only, and names the first one.
  void leaveOut(const std::string& path) {
    if (scan_.unscanned.empty()) scan_.unscanned.push_back(path.empty() ? "." : path);
    ++scan_.unscanned_count;
  }

 private:
  enum class Opened : std::uint8_t { link, other };

  /// Whether a path is a link, whose text goes to `target`, or leads through one.
  [[nodiscard]] Opened open(const std::string& path, std::string* target = nullptr) const {
    const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return opened == -ELOOP ? Opened::link : Opened::other;
    const sys::Fd fd(static_cast<int>(opened));
    char text[PATH_MAX];
    const ssize_t length = ::readlinkat(fd.get(), "", text, sizeof(text));
    if (length <= 0) return Opened::other;
    if (target != nullptr) target->assign(text, static_cast<std::size_t>(length));
    return Opened::link;
  }

  void add(const std::string& path, bool directory, const std::string& source) {
    if (known_.insert(path).second) scan_.protected_paths.push_back({path, directory, "", source});
  }

  /// Searches a directory for names that are protected if it is called `name`.
  void searchBelow(const std::string& path, const std::string& name, const std::string& source, int depth) {
    const long opened =
        isolation::openBeneath(root_.descriptor(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR* stream = opened < 0 ? nullptr : ::fdopendir(static_cast<int>(opened));
    if (stream == nullptr) {
      if (opened >= 0) ::close(static_cast<int>(opened));
      return;
    }
    std::vector<std::string> directories;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view own = entry->d_name;
      if (own == "." || own == "..") continue;
      if (++entries_ > kMaxLinkedEntries) {
        leaveOut(path);
        break;
      }
      struct stat status{};
      if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(status.st_mode)) {
        continue;  // ProtectedLinks has the links
      }
      const bool directory = S_ISDIR(status.st_mode);
      if (files_.match(join(name, own))) {
        add(join(path, own), directory, source);
      } else if (directory && depth < kMaxDepth) {
        directories.emplace_back(own);
      }
    }
    ::closedir(stream);
    for (const std::string& below : directories) searchBelow(join(path, below), join(name, below), source, depth + 1);
  }

  const sys::RootDir& root_;
  const policy::ProtectedFiles& files_;
  plan::WorkspaceScan& scan_;
  std::set<std::string> known_;
  std::map<std::string, std::string> targets_;  ///< of the links
  std::size_t entries_ = 0;
};

}  // namespace

void protectThroughLinks(const sys::RootDir& root, const std::string& workspace, const policy::ProtectedFiles& files,
                         const policy::OutsideLinks& outside, plan::WorkspaceScan& scan) {
  std::optional<policy::ProtectedLinks> links;
  links.emplace(files, workspace, scan.links, scan.programs, outside);
  LinkProtection protection(root, files, scan);
  bool again = true;
  for (int i = 0; again && i < kMaxRounds; ++i) {
    again = false;
    for (const Place& place : links->places()) again = protection.addHiddenLink(place) || again;
    if (again) links.emplace(files, workspace, scan.links, scan.programs, outside);
  }
  for (const Place& place : links->places()) protection.protect(place);
  for (const auto& [path, way] : links->ways()) protection.protectLink(path, way.source);
  if (links->isIncomplete() || again) protection.leaveOut("");
}

}  // namespace caisson::host
