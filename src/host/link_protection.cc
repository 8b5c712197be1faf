#include "host/link_protection.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <set>
#include <vector>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "policy/rules/protected_links.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

using Place = policy::ProtectedLinks::Place;

constexpr std::size_t kMaxEntries = 100'000;  // below links, in all
constexpr int kMaxDepth = 4;                  // one more than the longest pattern has parts

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
    if (!place.path.empty() && (place.executed() || files_.match(place.name))) {
      add(place.path, directory, place.source);
    } else if (directory && !place.executed()) {
      searchBelow(place.path, place.name, place.source, 0);
    }
  }

  /// Protects a link, if there is one.
  void protectLink(const std::string& path) {
    const auto link = targets_.find(path);
    if (link != targets_.end() && known_.insert(path).second) {
      scan_.protected_paths.push_back({.path = path, .target = link->second});
    }
  }

  /// Counts a directory that was searched in part only, and names the first one.
  void leaveOut(const std::string& path) {
    if (scan_.unscanned.empty()) scan_.unscanned.push_back(path.empty() ? "." : path);
    ++scan_.unscanned_count;
  }

 private:
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
      if (++entries_ > kMaxEntries) {
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
                         plan::WorkspaceScan& scan) {
  const policy::ProtectedLinks links(files, workspace, scan.links, scan.programs);
  LinkProtection protection(root, files, scan);
  for (const Place& place : links.places()) protection.protect(place);
  for (const auto& [path, way] : links.ways()) protection.protectLink(path);
  if (links.isIncomplete()) protection.leaveOut("");
}

}  // namespace caisson::host
