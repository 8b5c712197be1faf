#include "session/commit/host_attributes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sys/fd.h"

namespace caisson::session {
namespace {

constexpr const char* kDefaultList = "system.posix_acl_default";  // of a directory
// The kernel's own limits, XATTR_LIST_MAX and XATTR_SIZE_MAX.
constexpr std::size_t kMaxNames = 64 * 1024, kMaxValue = 64 * 1024;

Error attributeError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

constexpr const char* kLabel = "security.selinux";

/// What a group may do that is not the one that `mode` is for: no more than others.
mode_t modeOfOtherGroup(mode_t mode) { return (mode & ~(S_ISGID | 070U)) | (mode & 070U & ((mode & 07U) << 3U)); }

/// Other attributes are the system's: file capabilities, for example, are lost with every change of a file.
bool isKept(std::string_view name) {
  return name == kAccessList || name == kDefaultList || name == kLabel || name.starts_with("user.");
}

}  // namespace

Result<HostAttributes> readAttributes(int directory, const std::string& name, const std::string& path) {
  // A file that cannot be read can be looked at: attributes that have no name need not be read.
  const sys::Fd object(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!object) return fail(attributeError("open", path, errno));
  return readAttributes(object.get(), path);
}

Result<HostAttributes> readAttributes(int object, const std::string& path) {
  const std::string self = "/proc/self/fd/" + std::to_string(object);
  std::string names(kMaxNames, '\0');
  const ssize_t length = ::listxattr(self.c_str(), names.data(), names.size());
  if (length < 0 && errno == ENOTSUP) return HostAttributes{};
  if (length < 0) return fail(attributeError("listxattr", path, errno));
  names.resize(static_cast<std::size_t>(length));
  HostAttributes found;
  std::string value(kMaxValue, '\0');
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find('\0', begin), names.size());
    std::string one = names.substr(begin, end - begin);
    begin = end + 1;
    if (!isKept(one)) continue;
    const ssize_t size = ::getxattr(self.c_str(), one.c_str(), value.data(), value.size());
    if (size < 0 && one == kLabel) continue;
    if (size < 0) return fail(attributeError("getxattr", path, errno));
    found.emplace_back(std::move(one), value.substr(0, static_cast<std::size_t>(size)));
  }
  return found;
}

mode_t takeOwner(int object, const HostOwner& owner, mode_t mode) {
  constexpr uid_t kSame = static_cast<uid_t>(-1);
  if (::geteuid() == 0 && ::fchownat(object, "", owner.uid, owner.gid, AT_EMPTY_PATH) == 0) return mode;
  struct stat status;
  if (::fstat(object, &status) == 0 && status.st_gid == owner.gid) return mode;
  if (::fchownat(object, "", kSame, owner.gid, AT_EMPTY_PATH) == 0) return mode;
  return modeOfOtherGroup(mode);
}

mode_t modeForOwner(const std::optional<HostOwner>& owner, mode_t mode) {
  if (!owner || ::geteuid() == 0 || ::getegid() == owner->gid) return mode;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(count, 0)));
  return std::ranges::find(groups, owner->gid) != groups.end() ? mode : modeOfOtherGroup(mode);
}

mode_t modeWithoutAccessList(int object, mode_t mode) {
  // The format of the attribute: a version, and entries of a tag, permissions and an id.
  struct AccessEntry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  constexpr std::size_t kHeader = 4;
  constexpr std::uint16_t kGroup = 0x04;
  const std::string self = "/proc/self/fd/" + std::to_string(object);
  std::string list(kMaxValue, '\0');
  const ssize_t size = ::getxattr(self.c_str(), kAccessList, list.data(), list.size());
  for (std::size_t at = kHeader; size > 0 && at + sizeof(AccessEntry) <= static_cast<std::size_t>(size);
       at += sizeof(AccessEntry)) {
    AccessEntry entry;
    std::memcpy(&entry, list.data() + at, sizeof(entry));
    // In the order of the machine: the kernel stores little endian, as all supported machines do.
    if (entry.tag == kGroup) return (mode & ~070U) | (mode & static_cast<mode_t>(entry.permissions << 3U) & 070U);
  }
  return mode;
}

Result<void> setAttributes(int object, const HostAttributes& attributes, const std::string& path) {
  const std::string self = "/proc/self/fd/" + std::to_string(object);
  for (const char* list : {kAccessList, kDefaultList}) {
    if (::removexattr(self.c_str(), list) != 0 && errno != ENODATA && errno != ENOTSUP && errno != EACCES) {
      return fail(attributeError("removexattr", path, errno));
    }
  }
  for (const auto& [name, value] : attributes) {
    if (::setxattr(self.c_str(), name.c_str(), value.data(), value.size(), 0) != 0 && name != kLabel) {
      return fail(attributeError("setxattr", path, errno));
    }
  }
  return {};
}

}  // namespace caisson::session
