#include "session/commit/host_attributes.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "sys/fd.h"

namespace caisson::session {
namespace {

constexpr const char* kAccessList = "system.posix_acl_access";
constexpr const char* kDefaultList = "system.posix_acl_default";  // of a directory
// The kernel's own limits, XATTR_LIST_MAX and XATTR_SIZE_MAX.
constexpr std::size_t kMaxNames = 64 * 1024, kMaxValue = 64 * 1024;

Error attributeError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

constexpr const char* kLabel = "security.selinux";

/// Other attributes are the system's: file capabilities, for example, are lost with every change of a file.
bool isKept(std::string_view name) {
  return name == kAccessList || name == kDefaultList || name == kLabel || name.starts_with("user.");
}

}  // namespace

Result<HostAttributes> readAttributes(int directory, const std::string& name, const std::string& path) {
  // A file that cannot be read can be looked at: attributes that have no name need not be read.
  const sys::Fd object(::openat(directory, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!object) return fail(attributeError("open", path, errno));
  const std::string self = "/proc/self/fd/" + std::to_string(object.get());
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

Result<void> setAttributes(int file, const HostAttributes& attributes, const std::string& path) {
  for (const char* list : {kAccessList, kDefaultList}) {
    if (::fremovexattr(file, list) != 0 && errno != ENODATA && errno != ENOTSUP && errno != EACCES) {
      return fail(attributeError("removexattr", path, errno));
    }
  }
  for (const auto& [name, value] : attributes) {
    if (::fsetxattr(file, name.c_str(), value.data(), value.size(), 0) != 0 && name != kLabel) {
      return fail(attributeError("setxattr", path, errno));
    }
  }
  return {};
}

}  // namespace caisson::session
