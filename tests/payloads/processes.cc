// Access to other processes: pid 1 of the sandbox, which has the payload's user id, and processes that outlive the run.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "payload.h"

namespace payload {
namespace {

pid_t pidFrom(const Arguments& arguments) {
  waitForInitToSettle();
  return std::atoi(arguments[0].c_str());
}

int tryTrace(const Arguments& arguments) {
  const pid_t pid = pidFrom(arguments);
  const long result = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr);
  if (result != 0) return refused("ptrace");
  return done();
}

int tryTraceMe(const Arguments&) { return report("ptrace", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }

/// EFAULT and EIO mean that the kernel's permission check passed.
int tryReadMemory(const Arguments& arguments) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{reinterpret_cast<void*>(0x10000), 1};  // NOLINT: any address of the other process
  const ssize_t count = process_vm_readv(pidFrom(arguments), &here, 1, &there, 1, 0);
  if (count >= 0 || errno == EFAULT) return done();
  return refused("process_vm_readv");
}

/// Copies another process's descriptors: its sockets, its directories.
int tryBorrowDescriptor(const Arguments& arguments) {
  const long pidfd = syscall(SYS_pidfd_open, pidFrom(arguments), 0);
  if (pidfd < 0) return refused("pidfd_open");
  for (int number = 0; number < 1024; ++number) {
    const long copy = syscall(SYS_pidfd_getfd, pidfd, number, 0);
    if (copy >= 0) return done("descriptor " + std::to_string(number));
    if (errno != EBADF) return refused("pidfd_getfd");
  }
  return refused("pidfd_getfd", EBADF);
}

int tryLimit(const Arguments& arguments) {
  rlimit limit{};
  const pid_t pid = pidFrom(arguments);
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) != 0) return refused("prlimit");
  limit.rlim_cur = limit.rlim_max > 64 ? 64 : limit.rlim_max;
  return report("prlimit", prlimit(pid, RLIMIT_NOFILE, &limit, nullptr));
}

int tryRenice(const Arguments& arguments) {
  return report("setpriority", setpriority(PRIO_PROCESS, static_cast<id_t>(pidFrom(arguments)), 19));
}

int tryIdle(const Arguments& arguments) {
  const sched_param parameter{};
  return report("sched_setscheduler", sched_setscheduler(pidFrom(arguments), SCHED_IDLE, &parameter));
}

/// Creates an orphan and checks whether pid 1 still reaps it.
bool initReapsOrphans() {
  int link[2];
  if (pipe(link) != 0) return false;
  const pid_t middle = fork();
  if (middle == 0) {
    const pid_t orphan = fork();
    if (orphan == 0) {
      pauseFor(50);
      _exit(0);
    }
    const ssize_t ignored = write(link[1], &orphan, sizeof(orphan));
    _exit(ignored == sizeof(orphan) ? 0 : 1);
  }
  waitpid(middle, nullptr, 0);
  pid_t orphan = -1;
  if (read(link[0], &orphan, sizeof(orphan)) != sizeof(orphan) || orphan <= 0) return false;
  for (int round = 0; round < 150; ++round) {
    if (kill(orphan, 0) != 0 && errno == ESRCH) return true;
    pauseFor(20);
  }
  return false;
}

/// Succeeds if pid 1 no longer works afterwards, whatever kill() returned.
int trySignalInit(const Arguments& arguments) {
  const int answer = kill(1, std::atoi(arguments[0].c_str()));
  const int error = answer == 0 ? 0 : errno;
  if (!initReapsOrphans()) return done("pid 1 no longer reaps");
  return refused("kill", error);
}

/// Kills everything that this process may signal.
int tryKillAll(const Arguments&) {
  const int answer = kill(-1, SIGKILL);
  const int error = answer == 0 ? 0 : errno;
  if (!initReapsOrphans()) return done("pid 1 no longer reaps");
  return refused("kill", error);
}

/// Starts a daemon that writes to FILE for twenty seconds, unless it is killed.
int trySurvive(const Arguments& arguments) {
  if (fork() != 0) {
    for (int round = 0; round < 100 && contentOf(arguments[0]).empty(); ++round) pauseFor(30);
    return done("a daemon was started");
  }
  setsid();
  if (fork() != 0) _exit(0);
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  for (int round = 0; round < 400; ++round) {
    const int fd = open(arguments[0].c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
      if (write(fd, ".", 1) != 1) _exit(1);
      close(fd);
    }
    pauseFor(50);
  }
  _exit(0);
}

/// Prints the pids in /proc on one line.
int listProcesses(const Arguments&) {
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return refused("open /proc");
  std::string list;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
      list += (list.empty() ? "" : " ") + std::string(entry->d_name);
  }
  closedir(directory);
  return done(list);
}

/// Forks until it fails; prints the number of processes.
int countForks(const Arguments& arguments) {
  const long most = std::atol(arguments[0].c_str());
  long count = 0;
  while (count < most) {
    const pid_t pid = fork();
    if (pid < 0) break;
    if (pid == 0) {
      pauseFor(60000);
      _exit(0);
    }
    ++count;
  }
  const int error = errno;
  kill(-1, SIGKILL);
  std::printf("started %ld processes\n", count);
  return count == most ? done() : refused("fork", error);
}

int widenAffinity(const Arguments&) {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
  cpu_set_t before;
  CPU_ZERO(&before);
  if (sched_getaffinity(0, sizeof(before), &before) != 0) return refused("sched_getaffinity");
  if (sched_setaffinity(0, sizeof(all), &all) != 0) return refused("sched_setaffinity");
  cpu_set_t now;
  CPU_ZERO(&now);
  sched_getaffinity(0, sizeof(now), &now);
  if (CPU_COUNT(&now) <= CPU_COUNT(&before)) return refused("sched_setaffinity", 0);
  return done(std::to_string(CPU_COUNT(&before)) + " became " + std::to_string(CPU_COUNT(&now)));
}

constexpr Verb kVerbs[] = {
    {"trace", "PID", 1, tryTrace},
    {"trace-me", "", 0, tryTraceMe},
    {"read-memory", "PID", 1, tryReadMemory},
    {"borrow-descriptor", "PID", 1, tryBorrowDescriptor},
    {"limit", "PID", 1, tryLimit},
    {"renice", "PID", 1, tryRenice},
    {"make-idle", "PID", 1, tryIdle},
    {"signal-init", "SIGNAL", 1, trySignalInit},
    {"kill-all", "", 0, tryKillAll},
    {"survive", "FILE", 1, trySurvive},
    {"list-processes", "", 0, listProcesses},
    {"count-forks", "MOST", 1, countForks},
    {"widen-affinity", "", 0, widenAffinity},
};

}  // namespace

std::span<const Verb> processVerbs() { return kVerbs; }

}  // namespace payload
