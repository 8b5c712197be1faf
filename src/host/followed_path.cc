#include "host/followed_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "base/path_parts.h"
#include "base/text.h"
#include "isolation/child.h"
#include "policy/rules/name_pattern.h"
#include "sys/fd.h"
#include "sys/file_identity.h"
#include "sys/home_directory.h"
#include "sys/kernel_file.h"
#include "sys/mount_table.h"

namespace caisson::host {
namespace {

constexpr int kMaxLinkSteps = 40;  // as the kernel

/// File systems that no other machine or program has to answer for.
constexpr std::string_view kLocal[] = {"aufs",     "bcachefs", "btrfs", "ecryptfs", "erofs",   "exfat",    "ext2",
                                       "ext3",     "ext4",     "f2fs",  "fuseblk",  "hfsplus", "iso9660",  "jfs",
                                       "msdos",    "nilfs2",   "ntfs3", "overlay",  "ramfs",   "reiserfs", "rootfs",
                                       "squashfs", "tmpfs",    "udf",   "vfat",     "xfs",     "zfs"};

enum class Entry : std::uint8_t { missing, link, other };

Entry readEntry(int root, const std::string& path, std::string& target) {
  const long opened = isolation::openBeneath(root, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return Entry::missing;
  const sys::Fd fd(static_cast<int>(opened));
  char text[PATH_MAX];
  const ssize_t length = ::readlinkat(fd.get(), "", text, sizeof(text));
  if (length < 0) return Entry::other;
  target.assign(text, static_cast<std::size_t>(length));
  return Entry::link;
}

class LinksOutside {
 public:
  explicit LinksOutside(std::string workspace) : workspace_(std::move(workspace)) {}

  std::optional<std::string> targetOf(const std::string& path) {
    if (pathBelow(path, workspace_)) return std::nullopt;  // above the workspace, whose path is canonical
    if (!missing_.empty() && path.starts_with(missing_) && path[missing_.size()] == '/') return std::nullopt;
    const auto known = known_.find(path);
    if (known != known_.end()) return known->second;
    if (known_.size() >= kMaxKnown) known_.clear();
    return known_.emplace(path, read(path)).first->second;
  }

 private:
  static constexpr std::size_t kMaxKnown = 10'000;

  std::optional<std::string> read(const std::string& path) {
    if (mounts_.empty()) loadMounts();
    if (const auto alias = aliases_.find(path); alias != aliases_.end()) return alias->second;
    if (std::ranges::find(mounts_, path, &sys::MountEntry::point) != mounts_.end()) return std::nullopt;
    const sys::MountEntry* mount = mountOf(path);
    if (mount == nullptr || !root_ || !answers(*mount)) return std::nullopt;
    std::string target;
    const Entry entry = readEntry(root_->get(), path.substr(1), target);
    if (entry == Entry::missing) missing_ = path;
    return entry == Entry::link && !target.empty() ? std::optional(std::move(target)) : std::nullopt;
  }

  void loadMounts() {
    mounts_ = sys::parseMountTable(sys::readKernelFile("/proc/self/mountinfo"));
    if (auto root = sys::openWithoutLinks("/")) root_ = std::move(*root);
    const sys::MountEntry* own = mountOf(workspace_);
    if (own == nullptr) return;
    // Where the workspace is in its file system.
    const std::string place = below(own->root, *pathBelow(own->point, workspace_));
    for (const sys::MountEntry& mount : mounts_) {
      if (mount.device != own->device || &mount == own) continue;
      if (const auto rest = pathBelow(mount.root, place)) {
        aliases_.emplace(below(mount.point, *rest), workspace_);
      } else if (const auto inside = pathBelow(place, mount.root)) {
        aliases_.emplace(mount.point, below(workspace_, *inside));
      }
    }
  }

  static std::string below(const std::string& directory, const std::string& path) {
    if (path.empty()) return directory;
    return (directory == "/" ? "" : directory) + "/" + path;
  }

  /// The mount that shows what is at a canonical path.
  [[nodiscard]] const sys::MountEntry* mountOf(const std::string& path) const {
    const sys::MountEntry* found = nullptr;
    for (const sys::MountEntry& mount : mounts_) {
      if (pathBelow(mount.point, path) && (found == nullptr || mount.point.size() >= found->point.size()))
        found = &mount;
    }
    return found;
  }

  [[nodiscard]] bool answers(const sys::MountEntry& mount) {
    if (std::ranges::find(kLocal, std::string_view(mount.type)) != std::end(kLocal)) return true;
    if (trusted_.empty()) {
      trusted_ = sys::homeDirectories();
      trusted_.insert(trusted_.end(), {workspace_, "/"});
    }
    return std::ranges::any_of(trusted_, [&](const std::string& path) { return mountOf(path) == &mount; });
  }

  const std::string workspace_;
  std::vector<sys::MountEntry> mounts_;
  std::map<std::string, std::string> aliases_;  ///< directories that mounts show a second time, and where else
  std::vector<std::string> trusted_;            ///< paths whose file systems answer
  std::string missing_;                         ///< the last path that does not exist: a target may have 2,000 parts
  std::optional<sys::Fd> root_;
  std::map<std::string, std::optional<std::string>> known_;
};

}  // namespace

policy::OutsideLinks linksOutside(const std::string& workspace) {
  return [links = std::make_shared<LinksOutside>(workspace)](const std::string& path) { return links->targetOf(path); };
}

std::optional<std::string> pathBelow(const std::string& directory, const std::string& path) {
  if (path == directory) return "";
  const std::string prefix = directory == "/" ? "/" : directory + "/";
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

std::optional<std::string> plainPathBelow(const std::string& directory, const std::string& path) {
  const auto below = pathBelow(directory, path);
  if (!below) return std::nullopt;
  std::vector<std::string> parts;
  for (const std::string_view part : policy::splitParts(*below, '/')) {
    if (part == "..") return std::nullopt;
    if (part != ".") parts.emplace_back(part);
  }
  return parts.empty() ? std::nullopt : std::optional(joined(parts, "/"));
}

std::optional<FollowedPath> followPath(const sys::RootDir& root, const std::string& workspace,
                                       const policy::OutsideLinks& outside, std::string_view path) {
  FollowedPath found;
  std::string missing;          // the last part of the workspace that does not exist
  std::vector<std::string> at;  // the parts of an absolute path
  std::deque<std::string> rest;
  for (const std::string_view part : policy::splitParts(path, '/')) rest.emplace_back(part);
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (!at.empty()) at.pop_back();
      continue;
    }
    at.push_back(part);
    const std::string here = "/" + joined(at, "/");
    const auto inside = pathBelow(workspace, here);
    std::string target;
    if (inside && inside->empty()) {
      if (!found.entered) found.entered = joined({rest.begin(), rest.end()}, "/");
      continue;
    }
    if (inside) {
      if (!found.exists && inside->starts_with(missing)) continue;  // there is nothing below it
      const Entry entry = readEntry(root.descriptor(), *inside, target);
      if (entry == Entry::missing) {
        found.exists = false;
        missing = *inside + "/";
      }
      if (entry != Entry::link) continue;
      found.links.push_back(*inside);
    } else {
      auto outer = outside(here);
      if (!outer) continue;
      target = *std::move(outer);
    }
    if (++links > kMaxLinkSteps) return std::nullopt;
    target.starts_with('/') ? at.clear() : at.pop_back();
    const auto parts = policy::splitParts(target, '/');
    rest.insert(rest.begin(), parts.begin(), parts.end());
  }
  found.path = "/" + joined(at, "/");
  return found;
}

std::optional<std::string> linkEnd(const sys::RootDir& root, const std::string& workspace,
                                   const policy::OutsideLinks& outside, const std::string& link,
                                   std::vector<std::string>* passed) {
  auto followed = followPath(root, workspace, outside, workspace + "/" + link);
  if (!followed) return std::nullopt;
  if (passed != nullptr) {
    std::erase(followed->links, link);
    std::ranges::move(followed->links, std::back_inserter(*passed));
  }
  auto end = pathBelow(workspace, followed->path);
  if (!end || end->empty() || *end == link || !followed->exists) return std::nullopt;
  return end;
}

}  // namespace caisson::host
