#include "host/state_disk.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "plan/image_root.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr unsigned kOverlayMagic = 0x794c7630U;

/// With less free space a run would end at once: a reserve is kept for the host (supervise/limits/disk_watch.h).
constexpr std::uint64_t kLeastFree = 64ULL << 20;
constexpr std::uint64_t kLeastFreeInodes = 1000;

std::string whyNotWritable(const std::string& path, int directory) {
  if (::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return path + " cannot be written: " + errnoName(errno);
  }
  struct statfs system{};
  if (::fstatfs(directory, &system) != 0) return path + ": " + errnoName(errno);
  const bool full = system.f_bavail * static_cast<std::uint64_t>(system.f_bsize) < kLeastFree;
  const bool no_inodes = system.f_files > 0 && system.f_ffree < kLeastFreeInodes;  // btrfs does not count them
  if (full || no_inodes) return "the disk of " + path + " is full";
  return (system.f_flags & ST_NOEXEC) != 0 ? "the file system of " + path + " is mounted noexec" : "";
}

}  // namespace

bool mayUseStateDisk(const policy::Policy& policy) {
  const policy::Filesystem& filesystem = policy.filesystem;
  return policy.isolation.tier == policy::Tier::landlock ||
         filesystem.overlay_store == policy::OverlayStore::prefer_disk ||
         (plan::hasOtherRoot(policy) && policy.isolation.user == policy::InsideUser::root) ||
         std::ranges::any_of(filesystem.tmpfs,
                             [](const policy::Tmpfs& one) { return one.store != policy::DirectoryStore::memory; });
}

plan::StateDisk probeStateDisk(const std::string& home) {
  plan::StateDisk disk;
  if (home.empty()) {
    disk.why_not = disk.why_no_overlay = "neither CAISSON_HOME nor HOME is set";
    return disk;
  }
  std::string path = home + "/runs";
  sys::Fd directory;
  while (!(directory = sys::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)))) {
    if (errno != ENOENT || path.size() <= 1) break;
    path.erase(std::max<std::size_t>(path.rfind('/'), 1));
  }
  disk.why_not = directory ? whyNotWritable(path, directory.get()) : path + ": " + errnoName(errno);
  disk.why_no_overlay = disk.why_not;
  if (!disk.why_not.empty()) return disk;
  if (std::string why = whyNoOverlay(directory.get()); !why.empty()) disk.why_no_overlay = home + ": " + why;
  return disk;
}

bool liesOnOverlay(int directory) {
  struct statfs system{};
  return ::fstatfs(directory, &system) == 0 && static_cast<unsigned>(system.f_type) == kOverlayMagic;
}

std::string whyNoOverlay(int directory) {
  constexpr std::pair<unsigned, const char*> kForeign[] = {
      {0x6969U, "NFS"},    {0x65735546U, "FUSE"}, {0xff534d42U, "CIFS"}, {0xfe534d42U, "SMB"},
      {0x01021997U, "9P"}, {0x00c36400U, "Ceph"}, {0x5346414fU, "AFS"}};
  struct statfs system{};
  if (::fstatfs(directory, &system) != 0) return errnoName(errno);
  const auto type = static_cast<unsigned>(system.f_type);
  if (type == kOverlayMagic) return "it lies on an overlay, which cannot hold another one's changes";
  for (const auto& [number, name] : kForeign) {
    // Names on a network file system may change on the server, and are looked up each time.
    if (type != number) continue;
    return std::string("it lies on ") + name +
           ", which cannot hold an overlay's changes: overlayfs needs a directory that no other process changes";
  }
  char value[8];
  if (::fgetxattr(directory, "user.overlay.opaque", value, sizeof(value)) < 0 && errno == EOPNOTSUPP) {
    return "its file system has no user attributes (user.*), by which an overlay marks replaced directories";
  }
  return "";
}

}  // namespace caisson::host
