#include "host/other_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/path_parts.h"
#include "isolation/child.h"

namespace caisson::host {
namespace {

struct HiddenFile {
  std::uint32_t missing = 0;                     ///< how many of its names are not hidden
  const plan::ReplacedFile* redacted = nullptr;  ///< what is shown instead; null: nothing
};
/// By inode and device: a hidden directory may hold a mount of another file system. A name in the tree is known by its
/// inode alone, since an overlay gives a file another device than its directory.
using HiddenFiles = std::map<std::pair<std::uint64_t, dev_t>, HiddenFile>;

/// Adds a name of a hidden file, if the file has others.
void addFile(int directory, const char* name, const plan::ReplacedFile* redacted, HiddenFiles& files) {
  struct statx status{};
  constexpr unsigned kWanted = STATX_TYPE | STATX_NLINK | STATX_INO;
  constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (::statx(directory, name, kFlags, kWanted, &status) != 0) return;
  if (!S_ISREG(status.stx_mode) || status.stx_nlink < 2) return;
  const dev_t device = makedev(status.stx_dev_major, status.stx_dev_minor);
  const HiddenFile first{status.stx_nlink, redacted};
  HiddenFile& file = files.try_emplace({status.stx_ino, device}, first).first->second;
  if (file.missing > 0) --file.missing;
  if (redacted == nullptr) file.redacted = nullptr;
}

/// Adds the files in hidden directories.
void addBelow(const sys::RootDir& root, std::vector<std::string> pending, HiddenFiles& files) {
  constexpr std::size_t kMaxPath = 3500;
  while (!pending.empty()) {
    const std::string path = std::move(pending.back());
    pending.pop_back();
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    const long opened = isolation::openBeneath(root.descriptor(), path.c_str(), kFlags);
    DIR* stream = opened < 0 ? nullptr : ::fdopendir(static_cast<int>(opened));
    if (stream == nullptr) {
      if (opened >= 0) ::close(static_cast<int>(opened));
      continue;
    }
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN) {
        addFile(::dirfd(stream), entry->d_name, nullptr, files);
      }
      const bool directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
      if (directory && path.size() < kMaxPath) pending.push_back(join(path, name));
    }
    ::closedir(stream);
  }
}

std::vector<std::uint64_t> inodesOf(const HiddenFiles& files) {
  std::vector<std::uint64_t> inodes;
  for (const auto& one : files) inodes.push_back(one.first.first);
  return inodes;
}

}  // namespace

void OtherNames::noteUntracked(const ListedTree& tree, const std::vector<std::uint64_t>& inodes) {
  if (std::ranges::all_of(inodes, [&](std::uint64_t inode) { return tree.tracks(inode); })) return;
  untracked_.insert(untracked_.end(), inodes.begin(), inodes.end());
}

void OtherNames::hideDenied(const sys::RootDir& root, const ListedTree& tree, const std::vector<std::string>& denied,
                            plan::WorkspaceScan& found) {
  const std::set<std::string> hidden(denied.begin(), denied.end());
  HiddenFiles files;
  for (const std::string& path : denied) addFile(root.descriptor(), path.c_str(), nullptr, files);
  addBelow(root, denied, files);
  std::erase_if(files, [](const auto& one) { return one.second.missing == 0; });
  noteUntracked(tree, inodesOf(files));
  for (const auto& [inode, path] : names_) {
    const auto file = files.lower_bound({inode, 0});
    const bool denies = file != files.end() && file->first.first == inode;
    if (denies && !isInOneOf(path, hidden)) found.denied_names.push_back(path);
  }
}

void OtherNames::hide(const sys::RootDir& root, const ListedTree& tree, plan::WorkspaceScan& found) {
  const std::set<std::string> hidden(found.secrets.begin(), found.secrets.end());
  HiddenFiles files;
  std::set<std::string> shown_in_part;
  for (const plan::ReplacedFile& file : found.redacted) {
    addFile(root.descriptor(), file.path.c_str(), &file, files);
    shown_in_part.insert(file.path);
  }
  std::vector<std::string> directories;
  for (const std::string& path : hidden) {
    addFile(root.descriptor(), path.c_str(), nullptr, files);
    directories.push_back(path);
  }
  addBelow(root, std::move(directories), files);
  std::erase_if(files, [](const auto& one) { return one.second.missing == 0; });
  noteUntracked(tree, inodesOf(files));
  std::vector<plan::ReplacedFile> redacted;
  for (auto& [inode, path] : names_) {
    const auto file = files.lower_bound({inode, 0});
    if (file == files.end() || file->first.first != inode || isInOneOf(path, hidden) || shown_in_part.contains(path))
      continue;
    if (file->second.redacted != nullptr) {
      redacted.push_back({std::move(path), file->second.redacted->content});
    } else {
      found.secrets.push_back(std::move(path));
    }
  }
  for (plan::ReplacedFile& file : redacted) found.redacted.push_back(std::move(file));
}

}  // namespace caisson::host
