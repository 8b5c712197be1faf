#include "sys/helper_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>

#include "sys/clone.h"
#include "sys/descriptor_limit.h"
#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kStackBytes = 32 * 1024;
constexpr int kFirst = 3, kAbove = 32;
static_assert(kFirst + kMaxHelperDescriptors < kAbove);

struct Start {
  const char* path;
  char* const* arguments;
  const int* descriptors;
  int count;
  int error = 0;
};

/// Sets up descriptors and executes the program. Shares memory with the parent, which is suspended until the exec: raw
/// system calls only.
int becomeProgram(void* argument) {
  auto* start = static_cast<Start*>(argument);
  raiseDescriptorLimit();
  raw(SYS_setpgid, 0, 0);  // the supervisor handles terminal interrupts
  const long null = raw(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
  for (int fd = 0; fd < kFirst; ++fd) raw(SYS_dup3, null, fd, 0);
  // Duplicate all above the target numbers first, so that none overwrites another.
  long above[kMaxHelperDescriptors] = {};
  for (int i = 0; i < start->count; ++i) above[i] = raw(SYS_fcntl, start->descriptors[i], F_DUPFD_CLOEXEC, kAbove);
  for (int i = 0; i < start->count; ++i) {
    if (start->descriptors[i] < 0) {
      raw(SYS_close, kFirst + i);
    } else {
      raw(SYS_dup3, above[i], kFirst + i, 0);
    }
  }
  raw(SYS_close_range, kFirst + start->count, ~0U, 0);
  char* const environment[] = {nullptr};
  start->error = static_cast<int>(-raw(SYS_execve, start->path, start->arguments, environment));
  raw(SYS_exit_group, 127);
  return 127;
}

}  // namespace

Result<HelperProcess> HelperProcess::start(const HelperOptions& options) {
  if (options.descriptors.size() > kMaxHelperDescriptors) {
    return fail(sysError(Stage::launch, "clone", options.path, EINVAL));
  }
  std::vector<std::string> words = options.words;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", options.path, errno));
  Start start{options.path.c_str(), arguments.data(), options.descriptors.data(),
              static_cast<int>(options.descriptors.size())};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: only SIGKILL or closing our socket ends it
  int pidfd = -1;
  HelperProcess process;
  // No exit signal: an application that embeds us must not receive SIGCHLD for this child.
  process.pid_ = sys::clone(becomeProgram, static_cast<char*>(stack) + kStackBytes,
                            CLONE_VM | CLONE_VFORK | CLONE_PIDFD, &start, &pidfd);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, kStackBytes);
  if (process.pid_ < 0) return fail(sysError(Stage::launch, "clone", options.path, error));
  process.pidfd_ = Fd(pidfd);
  if (start.error != 0) return fail(sysError(Stage::launch, "execve", options.path, start.error));
  return process;
}

HelperProcess& HelperProcess::operator=(HelperProcess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void HelperProcess::end() {
  if (pid_ < 0 || !pidfd_) return;
  raw(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  int status = 0;
  while (raw(SYS_wait4, pid_, &status, __WALL, nullptr) == -EINTR) {
  }
  pid_ = -1;
}

}  // namespace caisson::sys
