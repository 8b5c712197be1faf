#include "sys/unix_peer.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "sys/fd.h"
#include "sys/kernel_abi.h"
#include "sys/kernel_file.h"
#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr auto kNobody = static_cast<uid_t>(-1);  // not a unix socket, or not connected

/// A descriptor of the process that connected, so that its pid cannot be reused unnoticed.
Fd pinPeer(int socket, pid_t pid) {
  int descriptor = -1;
  socklen_t size = sizeof(descriptor);
  if (::getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &descriptor, &size) == 0) return Fd(descriptor);
  if (errno != ENOPROTOOPT || pid <= 0) return {};
  return Fd(static_cast<int>(raw(SYS_pidfd_open, pid, 0)));
}

bool isRunning(const Fd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) == 0;
}

/// The user namespace of a process, as the kernel names it: "user:[4026531837]". Empty with errno after an error. Reads
/// the link and does not follow it: AppArmor refuses that to programs with a profile.
std::string namespaceOf(const char* process) {
  char link[64];
  const std::string path = std::string("/proc/") + process + "/ns/user";
  const ssize_t size = ::readlink(path.c_str(), link, sizeof(link));
  return {link, size > 0 ? static_cast<std::size_t>(size) : 0};
}

/// The same for a peer. One without a pid in our /proc is asked for by its descriptor (Linux 6.11).
std::string namespaceOfPeer(const Fd& process, pid_t pid) {
  if (pid > 0) return namespaceOf(std::to_string(pid).c_str());
  const Fd opened(::ioctl(process.get(), kPidfdGetUserNamespace, 0));
  struct stat found{};
  if (!opened || ::fstat(opened.get(), &found) != 0) return {};
  return "user:[" + std::to_string(found.st_ino) + "]";
}

/// The line "NSpid:" of a process: one number for each pid namespace below that of /proc.
std::ptrdiff_t pidNamespaces(const char* process) {
  const std::string status = readKernelFile((std::string("/proc/") + process + "/status").c_str());
  const std::size_t begin = status.find("\nNSpid:");
  if (begin == std::string::npos) return 0;
  const std::size_t end = std::min(status.find('\n', begin + 1), status.size());
  return std::count(status.begin() + static_cast<std::ptrdiff_t>(begin),
                    status.begin() + static_cast<std::ptrdiff_t>(end), '\t');
}

/// For a peer whose namespace we may not open, since it has capabilities that we lack: a root caller's supervisor has
/// dropped most capabilities. The map of a sandbox differs from ours, or its processes are in a deeper pid namespace.
bool hasOurMap(pid_t pid) {
  const std::string process = std::to_string(pid);
  const std::string ours = readKernelFile("/proc/self/uid_map");
  return !ours.empty() && readKernelFile(("/proc/" + process + "/uid_map").c_str()) == ours &&
         pidNamespaces("self") > 0 && pidNamespaces(process.c_str()) == pidNamespaces("self");
}

bool isInOurNamespace(int socket, pid_t pid) {
  const std::string ours = namespaceOf("self");
  if (ours.empty()) {
    // A kernel without user namespaces: there is no other one.
    return errno == ENOENT && ::access("/proc/self/stat", F_OK) == 0;
  }
  const Fd process = pinPeer(socket, pid);
  if (!process) return false;
  errno = 0;
  const std::string theirs = namespaceOfPeer(process, pid);
  const bool same = theirs.empty() ? errno == EACCES && pid > 0 && hasOurMap(pid) : theirs == ours;
  return same && isRunning(process);  // last: what was read by its pid is of this process only while it runs
}

}  // namespace

std::optional<UnixPeer> identifyPeer(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid == kNobody) return std::nullopt;
  return UnixPeer{.uid = peer.uid, .is_owner = peer.uid == ::geteuid() && isInOurNamespace(socket, peer.pid)};
}

}  // namespace caisson::sys
