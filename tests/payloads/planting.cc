// Plants what the host would later trust: setuid files, devices, overlay marks, privileged attributes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "payload.h"

namespace payload {
namespace {

constexpr mode_t kSetId = S_ISUID | S_ISGID;
constexpr long kFchmodat2 = 452;

/// Succeeds if the file now has a setuid or setgid bit.
int judgeMode(std::string_view call, const char* path, int error) {
  struct stat status{};
  if (stat(path, &status) != 0) return refused(call, error);
  if ((status.st_mode & kSetId) == 0) return refused(call, error);
  char text[16];
  std::snprintf(text, sizeof(text), "%04o", status.st_mode & 07777U);
  return done(text);
}

/// The call uses mode 06755; creates the file first if the call changes an existing one.
int plantSetId(const Arguments& arguments) {
  const std::string& how = arguments[0];
  const char* path = arguments[1].c_str();
  constexpr mode_t kMode = kSetId | 0755;
  long result = -1;
  errno = 0;
  if (how.find("chmod") != std::string::npos) {
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
    if (fd < 0) return refused("open");
    errno = 0;
    if (how == "fchmod") result = syscall(SYS_fchmod, fd, kMode);
    if (how == "fchmodat") result = syscall(SYS_fchmodat, AT_FDCWD, path, kMode);
    if (how == "fchmodat2") result = syscall(kFchmodat2, AT_FDCWD, path, kMode, 0);
    if (how == "chmod") {
#if defined(SYS_chmod)
      result = syscall(SYS_chmod, path, kMode);
#else
      return unavailable("this architecture has no chmod");
#endif
    }
    // The kernel drops the bits above 16 of a mode.
    if (how == "chmod-high-bits") result = syscall(SYS_fchmodat, AT_FDCWD, path, 0x700000000UL | kMode);
  } else if (how == "openat") {
    result = syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_WRONLY, kMode);
  } else if (how == "tmpfile") {
    const std::string directory(path, std::strrchr(path, '/') - path);
    result = syscall(SYS_openat, AT_FDCWD, directory.c_str(), O_TMPFILE | O_RDWR, kMode);
    if (result >= 0) {
      const std::string by_descriptor = "/proc/self/fd/" + std::to_string(result);
      result = linkat(AT_FDCWD, by_descriptor.c_str(), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
    }
  } else if (how == "mknodat") {
    result = syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | kMode, 0);
  } else if (how == "mkdirat") {
    result = syscall(SYS_mkdirat, AT_FDCWD, path, kMode);
  } else if (how == "open" || how == "creat" || how == "mknod") {
#if defined(SYS_open)
    if (how == "open") result = syscall(SYS_open, path, O_CREAT | O_WRONLY, kMode);
    if (how == "creat") result = syscall(SYS_creat, path, kMode);
    if (how == "mknod") result = syscall(SYS_mknod, path, S_IFREG | kMode, 0);
#else
    return unavailable("this architecture has no " + how);
#endif
  } else {
    return kUsage;
  }
  return judgeMode(how, path, result < 0 ? errno : 0);
}

/// Succeeds if a device node exists afterwards, whatever the call returned.
int plantDevice(const Arguments& arguments) {
  const std::string& how = arguments[0];
  const char* path = arguments[1].c_str();
  long result = -1;
  if (how == "character") result = mknod(path, S_IFCHR | 0666, makedev(1, 3));
  if (how == "block") result = mknod(path, S_IFBLK | 0666, makedev(7, 0));
  if (how == "whiteout") result = mknod(path, S_IFCHR, makedev(0, 0));
  if (how == "rename-whiteout") {
    // The kernel leaves a character device 0:0 in place of the file.
    const std::string other = arguments[1] + ".moved";
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return refused("open");
    close(fd);
    result = syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, other.c_str(), 4 /* RENAME_WHITEOUT */);
  }
  const int error = result < 0 ? errno : 0;
  struct stat status{};
  if (lstat(path, &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) return done();
  return refused(how, error);
}

int setAttribute(const Arguments& arguments) {
  const std::string& value = arguments[1];
  return report("setxattr", setxattr(arguments[2].c_str(), arguments[0].c_str(), value.data(), value.size(), 0));
}

/// A file capability: version 2, CAP_SYS_ADMIN, effective.
int setFileCapability(const Arguments& arguments) {
  const unsigned value[5] = {0x02000001, 1U << 21, 0, 0, 0};
  return report("setxattr", setxattr(arguments[0].c_str(), "security.capability", value, sizeof(value), 0));
}

constexpr Verb kVerbs[] = {
    {"plant-set-id", "CALL PATH", 2, plantSetId},
    {"plant-device", "character|block|whiteout|rename-whiteout PATH", 2, plantDevice},
    {"set-attribute", "NAME VALUE PATH", 3, setAttribute},
    {"set-file-capability", "PATH", 1, setFileCapability},
};

}  // namespace

std::span<const Verb> plantingVerbs() { return kVerbs; }

}  // namespace payload
