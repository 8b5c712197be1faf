#include "host/path_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/clone.h"
#include "sys/fd.h"
#include "sys/raw_syscall.h"

namespace caisson::host {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} * 1024;
constexpr std::size_t kPathBytes = 4096;

/// What the probing process writes for each path; smaller than PIPE_BUF, so writes are atomic.
struct Seen {
  HostFile on_host = HostFile::absent;
  bool readable = false, writable = false, executable = false;
  std::uint32_t directory_bytes = 0;  ///< length of the nearest existing directory in the path; 0: not searched
  bool directory_writable = false;
};

struct Task {
  const std::vector<FileRequest*>* requests;
  std::size_t first;
  int pipe;
};

bool callerMay(const char* path, int what) { return ::faccessat(AT_FDCWD, path, what, AT_EACCESS) == 0; }

HostFile kindOf(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return HostFile::file;
  return S_ISDIR(status.st_mode) ? HostFile::directory : HostFile::other;
}

/// Probes one path. Must not allocate: the process is a copy of one that may have threads.
Seen look(const FileRequest& request) {
  Seen seen;
  struct stat status{};
  const char* path = request.path.c_str();
  if (::stat(path, &status) == 0) {
    seen.on_host = kindOf(status);
    seen.readable = callerMay(path, R_OK);
    seen.writable = callerMay(path, W_OK);
    seen.executable = callerMay(path, X_OK);
    return seen;
  }
  const bool changes = request.operation == FileOperation::write || request.operation == FileOperation::create;
  char directory[kPathBytes];
  if (!changes || request.path.size() >= sizeof(directory)) return seen;
  std::memcpy(directory, path, request.path.size() + 1);
  do {
    char* slash = std::strrchr(directory, '/');
    if (slash == nullptr) return seen;
    *(slash == directory ? slash + 1 : slash) = '\0';
  } while (std::strcmp(directory, "/") != 0 && ::stat(directory, &status) != 0);
  seen.directory_bytes = static_cast<std::uint32_t>(std::strlen(directory));
  if (std::strcmp(directory, "/") == 0 && ::stat(directory, &status) != 0) return seen;
  seen.directory_writable = S_ISDIR(status.st_mode) && callerMay(directory, W_OK | X_OK);
  return seen;
}

int lookAtEach(void* argument) {
  const auto* task = static_cast<const Task*>(argument);
  for (std::size_t at = task->first; at < task->requests->size(); ++at) {
    const Seen seen = look(*(*task->requests)[at]);
    if (::write(task->pipe, &seen, sizeof(seen)) != static_cast<ssize_t>(sizeof(seen))) break;
  }
  ::_exit(0);
}

void fill(FileRequest& request, const Seen& seen) {
  request.on_host = seen.on_host;
  request.host_readable = seen.readable;
  request.host_writable = seen.writable;
  request.host_executable = seen.executable;
  request.host_directory = request.path.substr(0, seen.directory_bytes);
  request.host_directory_writable = seen.directory_writable;
}

/// Probes from `first` on; returns the index of the first path without an answer, or the number of paths.
std::size_t lookFrom(const std::vector<FileRequest*>& requests, std::size_t first, std::chrono::milliseconds per_path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return first;
  const sys::Fd reading(ends[0]);
  sys::Fd writing(ends[1]);
  Task task{&requests, first, writing.get()};
  std::vector<char> stack(kStackBytes);
  // No exit signal: an embedding application must not see this child.
  char* top = stack.data() + stack.size() - reinterpret_cast<std::uintptr_t>(stack.data() + stack.size()) % 16;
  int pidfd_number = -1;
  const pid_t pid = sys::clone(lookAtEach, top, CLONE_PIDFD, &task, &pidfd_number);
  if (pid < 0) return first;
  const sys::Fd pidfd(pidfd_number);
  writing.reset();
  std::size_t next = first;
  while (next < requests.size()) {
    pollfd ready{reading.get(), POLLIN, 0};
    const int answered = ::poll(&ready, 1, static_cast<int>(per_path.count()));
    if (answered < 0 && errno == EINTR) continue;
    Seen seen;
    if (answered <= 0 || ::read(reading.get(), &seen, sizeof(seen)) != static_cast<ssize_t>(sizeof(seen))) break;
    fill(*requests[next++], seen);
  }
  sys::raw(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  // Do not wait for it while it hangs: some file systems make it unkillable. It is reaped when we exit.
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (::poll(&ended, 1, 100) > 0) sys::raw(SYS_wait4, pid, nullptr, __WALL | WNOHANG, nullptr);
  return next;
}

}  // namespace

std::vector<std::string> probePaths(const std::vector<FileRequest*>& requests, PathProbeLimits limits) {
  std::vector<std::string> unanswered;
  for (std::size_t next = 0; next < requests.size();) {
    next = lookFrom(requests, next, limits.per_path);
    if (next >= requests.size()) break;
    unanswered.push_back(requests[next++]->path);
    if (static_cast<int>(unanswered.size()) < limits.stuck_paths) continue;
    for (; next < requests.size(); ++next) unanswered.push_back(requests[next]->path);
  }
  return unanswered;
}

}  // namespace caisson::host
