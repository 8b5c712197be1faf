#include "sys/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "sys/descriptor_path.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr long kFuse = 0x65735546;     // its handles and their meaning change with every mount
constexpr long kOverlay = 0x794c7630;  // a handle of a lower directory changes when it is copied up
constexpr std::size_t kFields = 5;

std::string hexadecimal(const void* data, std::size_t bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) {
    text += kDigits[at[i] >> 4U];
    text += kDigits[at[i] & 0xfU];
  }
  return text;
}

std::string handleOf(int descriptor) {
  struct {
    file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
  } buffer{};
  buffer.head.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(descriptor, "", &buffer.head, &mount, AT_EMPTY_PATH) != 0) return "";
  return std::to_string(buffer.head.handle_type) + ":" + hexadecimal(buffer.bytes, buffer.head.handle_bytes);
}

bool readNumber(std::string_view text, std::uint64_t& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

/// Opens `path` name by name, for kernels and filters without openat2.
long openByHand(const std::string& path) {
  Fd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t begin = 0; at && begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") return -EINVAL;
    // O_DIRECTORY rejects a link with ENOTDIR, O_NOFOLLOW alone would open the link.
    Fd next(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return -errno;
    if (S_ISLNK(status.st_mode)) return -ELOOP;
    if (!S_ISDIR(status.st_mode)) return -ENOTDIR;
    at = std::move(next);
  }
  return at ? at.release() : -errno;
}

std::string describe(const FileIdentity& identity) {
  return "inode " + std::to_string(identity.inode) + " of device " + std::to_string(identity.device >> 8U & 0xfffU) +
         ":" + std::to_string((identity.device & 0xffU) | (identity.device >> 12U & 0xfff00U));
}

std::unexpected<Error> replaced(const std::string& path, const FileIdentity& expected, int found,
                                std::string_view hint) {
  const auto name = canonicalPath(found);
  const auto identity = identityOf(found);
  const bool elsewhere = name && *name != path;
  std::string reason = elsewhere ? "a symbolic link leads to " + *name : "another directory is there now";
  if (!expected.empty()) reason += ": expected " + path + " with " + describe(expected) + ", found ";
  if (!expected.empty()) reason += (name ? *name : path) + (identity ? " with " + describe(*identity) : "");
  return std::unexpected(withCode(plainError(Stage::state, "open", path, reason, hint), ErrorCode::directory_replaced));
}

}  // namespace

std::string FileIdentity::text() const {
  const auto field = [](const std::string& value) { return value.empty() ? std::string("-") : value; };
  return field(handle) + " " + field(file_system) + " " + std::to_string(device) + " " + std::to_string(inode) + " " +
         field(boot);
}

std::optional<FileIdentity> FileIdentity::read(std::string_view text) {
  std::array<std::string, kFields> fields;
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::size_t end = text.find(' ');
    if ((end == std::string_view::npos) != (i + 1 == kFields)) return std::nullopt;
    fields[i] = text.substr(0, end);
    if (fields[i].empty()) return std::nullopt;
    if (fields[i] == "-") fields[i].clear();
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  FileIdentity identity{fields[0], fields[1], 0, 0, fields[4]};
  if (!readNumber(fields[2], identity.device) || !readNumber(fields[3], identity.inode) || identity.empty()) {
    return std::nullopt;
  }
  return identity;
}

Result<FileIdentity> identityOf(int descriptor) {
  struct stat status{};
  struct statfs system{};
  if (::fstat(descriptor, &status) != 0) return fail(sysError(Stage::state, "fstat", "", errno));
  if (::fstatfs(descriptor, &system) != 0) return fail(sysError(Stage::state, "fstatfs", "", errno));
  FileIdentity identity;
  identity.device = status.st_dev;
  identity.inode = status.st_ino;
  static_assert(sizeof(system.f_fsid) == 8);
  constexpr unsigned char kNone[sizeof(system.f_fsid)] = {};
  if (std::memcmp(&system.f_fsid, kNone, sizeof(kNone)) != 0) {
    identity.file_system = hexadecimal(&system.f_fsid, sizeof(system.f_fsid));
  }
  const auto type = static_cast<long>(system.f_type);
  if (type != kFuse && type != kOverlay) identity.handle = handleOf(descriptor);
  identity.boot = bootId();
  return identity;
}

bool isSameFile(const FileIdentity& one, const FileIdentity& other) {
  if (one.empty() || other.empty() || one.handle != other.handle) return false;
  const bool same_boot = !one.boot.empty() && one.boot == other.boot;
  if (!one.handle.empty() && !one.file_system.empty()) return one.file_system == other.file_system;
  return one.inode == other.inode && (!same_boot || one.device == other.device);
}

Result<Fd> openWithoutLinks(const std::string& path) {
  OpenHow how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = kResolveNoSymlinks | kResolveNoMagiclinks;
  long opened = raw(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how));
  if (opened == -ENOSYS || opened == -EPERM) opened = openByHand(path);
  if (opened < 0) return fail(sysError(Stage::state, "open", path, static_cast<int>(-opened)));
  return Fd(static_cast<int>(opened));
}

Result<Fd> openKnown(const std::string& path, const FileIdentity& expected, std::string_view hint) {
  auto opened = openWithoutLinks(path);
  if (!opened && opened.error().sys_errno == ELOOP) {
    const Fd target(::open(path.c_str(), O_PATH | O_CLOEXEC));  // only to name it
    if (target) return replaced(path, expected, target.get(), hint);
  }
  if (!opened) {
    if (opened.error().hint.empty()) opened.error().hint = hint;
    return opened;
  }
  if (expected.empty()) return opened;
  const auto found = identityOf(opened->get());
  if (!found) return fail(found.error());
  if (!isSameFile(expected, *found)) return replaced(path, expected, opened->get(), hint);
  return opened;
}

std::string bootId() {
  const Fd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : -1;
  std::string id = got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace caisson::sys
