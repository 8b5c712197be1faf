#include "supervise/streams/handed_streams.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

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

std::uint64_t rightsOf(int access_mode) {
  switch (access_mode) {
    case O_RDONLY: return sys::kFsReadFile;
    case O_WRONLY: return sys::kFsWriteFile | sys::kFsTruncate;
    default: return sys::kFsReadFile | sys::kFsWriteFile | sys::kFsTruncate;
  }
}

bool isAnonymousPipe(int descriptor) {
  struct statfs system{};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == kPipeFilesystem;
}

}  // namespace

KeptFlags::KeptFlags(const HandedStreams& handed) {
  for (int stream = 0; stream < 3; ++stream) {
    if (handed.stream[stream]) flags_.emplace_back(stream, handed.flags[stream]);
  }
}

KeptFlags::~KeptFlags() {
  for (const auto& [descriptor, flags] : flags_) {
    if (::fcntl(descriptor, F_GETFL) != flags) ::fcntl(descriptor, F_SETFL, flags);
  }
}

void KeptFlags::keep(int descriptor) {
  if (const int flags = ::fcntl(descriptor, F_GETFL); flags >= 0) flags_.emplace_back(descriptor, flags);
}

CallerStream inspectStream(int descriptor) {
  CallerStream stream;
  struct stat status{};
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0 || ::fstat(descriptor, &status) != 0) return stream;
  stream.flags = flags;
  switch (status.st_mode & S_IFMT) {
    case S_IFREG:
      stream.can_hand_over = true;
      stream.reopen_rights = rightsOf(flags & O_ACCMODE);
      stream.appends = (flags & O_APPEND) != 0;
      break;
    case S_IFIFO: stream.can_hand_over = true; break;
    case S_IFCHR: stream.can_hand_over = isPlainDevice(status.st_rdev); break;
    case S_IFSOCK: stream.can_hand_over = isConnectedUnixStream(descriptor); break;
    default: break;
  }
  return stream;
}

std::vector<plan::PassedDescriptor> inspectPassed(const std::vector<std::string>& numbers) {
  std::vector<plan::PassedDescriptor> passed;
  for (const std::string& text : numbers) {
    plan::PassedDescriptor one;
    one.number = std::atoi(text.c_str());
    if (std::ranges::find(passed, one.number, &plan::PassedDescriptor::number) != passed.end()) continue;
    const int flags = ::fcntl(one.number, F_GETFD);
    const CallerStream stream = inspectStream(one.number);
    one.reopen_rights = stream.reopen_rights;
    one.readable_file = stream.reopen_rights == sys::kFsReadFile;
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) {
      one.why_not = "is not open";
    } else if (!stream.can_hand_over) {
      one.why_not = "is not a file, pipe or connected UNIX stream socket; it could lead out of the sandbox";
    }
    passed.push_back(std::move(one));
  }
  return passed;
}

HandedStreams handedStreams(const Request& request, bool other_user) {
  HandedStreams handed;
  const bool outputs = !request.limit_relayed_output;
  const bool wanted[3] = {request.relay_stdin && request.input.empty(), outputs && request.out == StreamMode::relay,
                          outputs && request.err == StreamMode::relay};
  for (int i = 0; i < 3; ++i) {
    if (!wanted[i]) continue;
    const CallerStream stream = inspectStream(i);
    handed.stream[i] = i == STDIN_FILENO ? stream.can_hand_over : stream.handedAsOutput(other_user);
    handed.reopen_rights[i] = stream.reopen_rights;
    handed.flags[i] = stream.flags;
  }
  return handed;
}

void giveTo(int descriptor, uid_t uid, gid_t gid) {
  if (isAnonymousPipe(descriptor)) (void)!::fchown(descriptor, uid, gid);
}

void openToAll(int descriptor) {
  if (isAnonymousPipe(descriptor)) (void)!::fchmod(descriptor, 0666);
}

}  // namespace caisson::supervise
