#include "supervise/handed_streams.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/kernel_abi.h"

namespace caisson::supervise {
namespace {

constexpr unsigned kMemoryMajor = 1;
constexpr auto kPipeFilesystem = 0x50495045;  // PIPEFS_MAGIC

bool isPlainDevice(dev_t device) {
  if (major(device) != kMemoryMajor) return false;
  switch (minor(device)) {
    case 3:               // null
    case 5:               // zero
    case 7:               // full
    case 8:               // random
    case 9: return true;  // urandom
    default: return false;
  }
}

/// Connected for good: a stream socket that has a peer cannot be connected to another one.
bool isConnectedUnixStream(int descriptor) {
  int domain = 0, type = 0;
  socklen_t size = sizeof(domain);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) return false;
  size = sizeof(type);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM) return false;
  sockaddr_un peer{};
  size = sizeof(peer);
  return ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

bool isAnonymousPipe(int descriptor) {
  struct statfs system{};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == kPipeFilesystem;
}

}  // namespace

bool canHandOver(int descriptor) {
  struct stat status{};
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || ::fstat(descriptor, &status) != 0) return false;
  switch (status.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFIFO: return true;
    case S_IFCHR: return isPlainDevice(status.st_rdev);
    case S_IFSOCK: return isConnectedUnixStream(descriptor);
    default: return false;
  }
}

std::uint64_t reopenRights(int descriptor) {
  struct stat status{};
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  switch (flags & O_ACCMODE) {
    case O_RDONLY: return sys::kFsReadFile;
    case O_WRONLY: return sys::kFsWriteFile | sys::kFsTruncate;
    default: return sys::kFsReadFile | sys::kFsWriteFile | sys::kFsTruncate;
  }
}

bool handsOutputOver(int descriptor, bool other_user) {
  return canHandOver(descriptor) && (!other_user || reopenRights(descriptor) == 0);
}

HandedStreams handedStreams(const Request& request, bool other_user) {
  HandedStreams handed;
  handed.stream[0] = request.relay_stdin && request.input.empty() && canHandOver(STDIN_FILENO);
  if (request.limit_relayed_output) return handed;
  handed.stream[1] = request.out == StreamMode::relay && handsOutputOver(STDOUT_FILENO, other_user);
  handed.stream[2] = request.err == StreamMode::relay && handsOutputOver(STDERR_FILENO, other_user);
  return handed;
}

void giveTo(int descriptor, uid_t uid, gid_t gid) {
  if (isAnonymousPipe(descriptor)) (void)!::fchown(descriptor, uid, gid);
}

void openToAll(int descriptor) {
  if (isAnonymousPipe(descriptor)) (void)!::fchmod(descriptor, 0666);
}

}  // namespace caisson::supervise
