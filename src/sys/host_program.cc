#include "sys/host_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr int kFirstFree = 16;  // no program gets a descriptor with this number or a higher one

/// The two objects that posix_spawn takes, freed by the destructor.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

}  // namespace

Result<HostProgram> HostProgram::start(const HostProgramOptions& options) {
  const std::string& program = options.arguments.front();
  SpawnSetup setup;
  std::vector<Fd> copies;  // above the numbers that the program gets, so that none overwrites another
  for (const HostProgramOptions::Descriptor& one : options.descriptors) {
    copies.emplace_back(::fcntl(one.ours, F_DUPFD_CLOEXEC, kFirstFree));
    if (!copies.back()) return fail(sysError(Stage::launch, "fcntl", program, errno));
    ::posix_spawn_file_actions_adddup2(&setup.actions, copies.back().get(), one.theirs);
  }
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (std::ranges::find(options.descriptors, stream, &HostProgramOptions::Descriptor::theirs) !=
        options.descriptors.end()) {
      continue;
    }
    ::posix_spawn_file_actions_addopen(&setup.actions, stream, "/dev/null", O_RDWR, 0);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  char* empty[] = {nullptr};
  pid_t pid = -1;
  const int failed = (options.search_path ? ::posix_spawnp : ::posix_spawn)(
      &pid, program.c_str(), &setup.actions, &setup.attributes, arguments.data(),
      options.inherit_environment ? environ : empty);
  if (failed != 0) return fail(sysError(Stage::launch, "posix_spawn", program, failed));
  HostProgram started(pid);
  started.pidfd_ = Fd(static_cast<int>(raw(SYS_pidfd_open, pid, 0)));
  if (!started.pidfd_) return fail(sysError(Stage::launch, "pidfd_open", program, EMFILE));
  return started;
}

std::optional<int> HostProgram::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd exited{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&exited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready == 1) return reap();
    if (ready < 0 && errno == EINTR) continue;
    end();
    return std::nullopt;
  }
}

int HostProgram::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void HostProgram::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);  // our own child, not yet waited for: its pid cannot be reused
  reap();
}

}  // namespace caisson::sys
