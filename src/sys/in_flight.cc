#include "sys/in_flight.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "sys/clone.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kMaxFiles = 8192;
constexpr std::size_t kMaxMessages = 4096;         // per socket
constexpr std::size_t kMaxDescriptors = 253;       // per message, in every kernel
constexpr std::size_t kMessageBytes = 256 * 1024;  // larger than a socket's largest message, so a peek returns it whole
constexpr std::size_t kInspectorStackBytes = 64 * 1024;

/// Allocated before the clone: the inspecting process shares our memory and must not allocate.
struct Inspection {
  std::span<const SocketOf> sockets;
  std::vector<InFlightFile> files;
  std::vector<int> descriptors;  ///< of `files`, valid in the inspecting process
  std::vector<char> message;
  std::size_t count = 0;
  std::uint64_t expected = 0;  ///< number of queued descriptors that fdinfo reports
};

InFlightFile describe(int fd) {
  InFlightFile file;
  struct stat status{};
  if (::fstat(fd, &status) != 0) return file;
  file.device = status.st_dev;
  file.inode = status.st_ino;
  if (S_ISSOCK(status.st_mode)) file.kind = InFlightFile::Kind::socket;
  if (S_ISFIFO(status.st_mode)) file.kind = InFlightFile::Kind::pipe;
  if (!S_ISREG(status.st_mode) || status.st_nlink != 0) return file;
  char path[40];
  char target[8];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(path, target, sizeof(target));
  if (length < 7 || std::string_view(target, 7) != "/memfd:") return file;
  file.kind = InFlightFile::Kind::memfd;
  file.bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  return file;
}

/// Adds the files of the next unpeeked message; false if there is none.
bool peekMessage(int socket, Inspection& to) {
  iovec io{to.message.data(), to.message.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  const ssize_t got = ::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return false;
  bool any = got > 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    any = true;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count && to.count < kMaxFiles; ++i) {
      std::memcpy(&to.descriptors[to.count], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      to.files[to.count] = describe(to.descriptors[to.count]);
      ++to.count;
    }
  }
  return any;  // neither bytes nor files: end of the stream
}

std::uint64_t queuedIn(int socket) {
  char path[40];
  char text[512];
  std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", socket);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : ::read(file, text, sizeof(text));
  ::close(file);
  return parseQueued({text, got > 0 ? static_cast<std::size_t>(got) : 0});
}

void peekAll(int socket, Inspection& to) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) return;
  to.expected += queuedIn(socket);
  int offset = 0;  // each peek now advances to the next message; the filter denies payloads this option
  if (::setsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) != 0) return;
  for (std::size_t messages = 0; messages < kMaxMessages && to.count < kMaxFiles; ++messages) {
    if (!peekMessage(socket, to)) break;
  }
  offset = -1;
  ::setsockopt(socket, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset));
}

int inspect(void* argument) {
  auto& work = *static_cast<Inspection*>(argument);
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) == 0) {
    most.rlim_cur = most.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &most);
  }
  for (const SocketOf& one : work.sockets) {
    const auto owner = static_cast<int>(::syscall(SYS_pidfd_open, one.pid, 0));
    if (owner < 0) continue;
    const auto copy = static_cast<int>(::syscall(SYS_pidfd_getfd, owner, one.number, 0));
    if (copy >= 0) peekAll(copy, work);
  }
  // Sockets within sockets: their files are appended to this list, so the loop visits them later.
  for (std::size_t at = 0; at < work.count; ++at) {
    if (work.files[at].kind != InFlightFile::Kind::socket) continue;
    bool before = false;
    for (std::size_t i = 0; i < at && !before; ++i) {
      before = work.files[i].inode == work.files[at].inode && work.files[i].device == work.files[at].device;
    }
    if (!before) peekAll(work.descriptors[at], work);
  }
  return 0;  // not by _exit: ThreadSanitizer's wrapper would change the state of the thread that waits, which is shared
}

}  // namespace

std::uint64_t parseQueued(std::string_view fdinfo) {
  constexpr std::string_view kKey = "scm_fds:";
  const std::size_t at = fdinfo.find(kKey);
  if (at == std::string_view::npos) return 0;
  fdinfo.remove_prefix(at + kKey.size());
  while (fdinfo.starts_with(' ') || fdinfo.starts_with('\t')) fdinfo.remove_prefix(1);
  std::uint64_t count = 0;
  std::from_chars(fdinfo.data(), fdinfo.data() + fdinfo.size(), count);
  return count;
}

InFlight filesInFlight(std::span<const SocketOf> sockets) {
  Inspection work{.sockets = sockets};
  if (sockets.empty()) return {};
  work.files.resize(kMaxFiles);
  work.descriptors.resize(kMaxFiles);
  work.message.resize(kMessageBytes);
  std::vector<char> stack(kInspectorStackBytes);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // our signal handlers must not run in it
  const auto top = (reinterpret_cast<std::uintptr_t>(stack.data()) + stack.size()) & ~std::uintptr_t{15};
  // Shares memory, not descriptors. No exit signal: the application must not see a SIGCHLD.
  const int pid = sys::clone(inspect, reinterpret_cast<void*>(top), CLONE_VM | CLONE_VFORK, &work);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0) {
    while (::waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
    }
  }
  work.files.resize(work.count);
  return {std::move(work.files), pid > 0 && work.count >= work.expected};
}

}  // namespace caisson::sys
