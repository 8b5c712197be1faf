#include "host/state_mounts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "plan/workspace.h"
#include "sys/fd.h"
#include "sys/kernel_file.h"

namespace caisson::host {
namespace {

using plan::below;
using sys::MountEntry;

/// A directory or file of a file system, which every mount of that file system may show.
struct Part {
  std::string device, path;
};

std::string joined(const std::string& directory, std::string_view rest) {
  if (rest.empty()) return directory;
  return (directory == "/" ? "" : directory) + "/" + std::string(rest);
}

/// `path` relative to `directory`, which it must be or lie in.
std::string_view relative(std::string_view path, std::string_view directory) {
  if (path.size() == directory.size()) return {};
  return path.substr(directory == "/" ? 1 : directory.size() + 1);
}

const MountEntry* mountOf(const std::string& path, std::uint64_t id, const std::vector<MountEntry>& mounts) {
  const MountEntry* found = nullptr;
  for (const MountEntry& mount : mounts) {
    if (!below(path, mount.point)) continue;
    if (mount.id == id) return &mount;
    // Later mounts cover earlier ones.
    if (found == nullptr || mount.point.size() >= found->point.size()) found = &mount;
  }
  return found;
}

/// What the directory is in its file system, and what is mounted directly in it, such as a disk for its `sessions`.
std::vector<Part> partsOf(const std::string& directory, const MountEntry& own, const std::vector<MountEntry>& mounts) {
  std::vector<Part> parts{{own.device, joined(own.root, relative(directory, own.point))}};
  for (const MountEntry& mount : mounts) {
    if (mount.point == directory || !below(mount.point, directory)) continue;
    const bool direct = relative(mount.point, directory).find('/') == std::string_view::npos;
    const bool holds_own = mount.device == own.device && below(parts.front().path, mount.root);
    if (direct && !holds_own) parts.push_back({mount.device, mount.root});
  }
  return parts;
}

/// The mount of `path`, or of the deepest directory above it that exists; 0: unknown (before Linux 5.8).
std::uint64_t mountIdOf(std::string path) {
  for (;;) {
    struct statx status{};
    if (::statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) == 0) {
      return (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
    }
    if (path.size() <= 1) return 0;
    path.erase(std::max<std::size_t>(path.rfind('/'), 1));
  }
}

/// If not, nothing has another name.
bool anyFileSystemTwice(const std::vector<MountEntry>& mounts) {
  std::vector<std::string_view> devices;
  for (const MountEntry& mount : mounts) devices.push_back(mount.device);
  std::ranges::sort(devices);
  return std::ranges::adjacent_find(devices) != devices.end();
}

}  // namespace

std::vector<std::string> otherNamesOf(const std::string& directory, std::uint64_t mount,
                                      const std::vector<MountEntry>& mounts) {
  std::vector<std::string> names;
  const MountEntry* own = mountOf(directory, mount, mounts);
  if (own == nullptr) return names;
  for (const Part& part : partsOf(directory, *own, mounts)) {
    for (const MountEntry& other : mounts) {
      if (other.device != part.device) continue;
      std::string name;
      if (below(other.root, part.path)) {
        name = other.point;
      } else if (below(part.path, other.root)) {
        name = joined(other.point, relative(part.path, other.root));
      }
      if (!name.empty() && !below(name, directory) && !below(directory, name)) names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> otherNamesOf(const std::vector<std::string>& directories) {
  const std::vector<MountEntry> mounts = sys::parseMountTable(sys::readKernelFile("/proc/self/mountinfo"));
  std::vector<std::string> names;
  if (!anyFileSystemTwice(mounts)) return names;
  for (const std::string& directory : directories) {
    if (directory.empty()) continue;
    for (std::string& name : otherNamesOf(directory, mountIdOf(directory), mounts)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

}  // namespace caisson::host
