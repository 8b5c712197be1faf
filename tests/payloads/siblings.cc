// `payload sibling KIND MARKER`: a process that attacks other processes of its sandbox until it is killed. It renames
// itself to "sibling-ready" once the attack is in full effect. MARKER is ignored: it lets a test find the process.
// SIGUSR1 makes it attempt a CRITICAL system call.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "payload.h"
#include "send_descriptors.h"

namespace payload {
namespace {

void setReady() { prctl(PR_SET_NAME, "sibling-ready"); }

[[noreturn]] void holdForever() {
  setReady();
  for (;;) pauseFor(60'000);
}

void makeCriticalCall(int) { syscall(SYS_bpf, 99, nullptr, 0); }

[[noreturn]] void signalAll(int number) {
  for (;;) {
    kill(-1, number);
    setReady();
  }
}

[[noreturn]] void reniceAll() {
  const sched_param parameter{};
  for (;;) {
    DIR* proc = opendir("/proc");
    while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
      const pid_t pid = std::atoi(entry->d_name);
      if (pid <= 0 || pid == getpid()) continue;
      setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 19);
      sched_setscheduler(pid, SCHED_IDLE, &parameter);
    }
    if (proc != nullptr) closedir(proc);
    setReady();
  }
}

/// Sends `count` copies of a descriptor to a socket that stays open and is never read.
bool sendDescriptors(std::size_t count) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  int ends[2];
  if (file < 0 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  const bool sent = sendCopies(ends[0], file, count) == 1;
  close(file);
  return sent;
}

[[noreturn]] void holdDescriptorsInFlight() {
  for (int sent = 0; sent < 1250; sent += 25) {
    if (!sendDescriptors(25)) break;
  }
  holdForever();
}

/// /proc of an undumpable process belongs to root, so its owner cannot read all of it.
int burnUndumpable(const Arguments& arguments) {
  prctl(PR_SET_DUMPABLE, 0);
  return perform({"burn-tree", arguments[0]});
}

[[noreturn]] void burnForever() {
  setReady();
  for (;;) burnUndumpable({"1"});
}

[[noreturn]] void holdInotify() {
  int queue = -1;
  for (int fd = 0; (fd = inotify_init1(IN_CLOEXEC)) >= 0;) queue = fd;
  for (int number = 0; number < 5000; ++number) {
    const std::string path = "/tmp/w" + std::to_string(number);
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    if (inotify_add_watch(queue, path.c_str(), IN_ALL_EVENTS) < 0) break;
  }
  holdForever();
}

[[noreturn]] void holdSemaphores() {
  for (int count = 0; count < 40'000 && semget(IPC_PRIVATE, 1, 0600) >= 0;) ++count;
  holdForever();
}

/// Opens ptys in four processes, since the descriptor limit of one does not suffice.
[[noreturn]] void holdPtys() {
  int ready[2];
  if (pipe(ready) != 0) holdForever();
  int children = 0;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child > 0) ++children;
    if (child != 0) continue;
    while (posix_openpt(O_RDWR | O_NOCTTY) >= 0) {
    }
    const ssize_t told = write(ready[1], "x", 1);
    for (;;) pauseFor(told == 1 ? 60'000 : 1000);
  }
  char byte = 0;
  while (children > 0 && read(ready[0], &byte, 1) == 1) --children;
  holdForever();
}

[[noreturn]] void holdSignals() {
  sigset_t queued;
  sigemptyset(&queued);
  sigaddset(&queued, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &queued, nullptr);
  while (sigqueue(getpid(), SIGRTMIN, {}) == 0) {
  }
  holdForever();
}

[[noreturn]] void holdProcesses() {
  for (;;) {
    const pid_t child = fork();
    if (child < 0) {
      setReady();
      pauseFor(5);  // takes what other processes release
    }
    while (child == 0) pauseFor(60'000);
  }
}

[[noreturn]] void forkForever() {
  signal(SIGCHLD, SIG_IGN);
  for (int count = 0;; ++count) {
    const pid_t child = fork();
    if (child == 0) {
      pauseFor(20);
      _exit(0);
    }
    if (child < 0 || count > 100) setReady();
  }
}

int attackSiblings(const Arguments& arguments) {
  char host[64] = {};
  gethostname(host, sizeof(host) - 1);
  if (std::strcmp(host, "sandbox") != 0) return unavailable("runs in a sandbox only: it would attack this host");
  signal(SIGUSR1, makeCriticalCall);
  const std::string& kind = arguments[0];
  if (kind == "stop-all") signalAll(SIGSTOP);
  if (kind == "kill-all") signalAll(SIGKILL);
  if (kind == "renice-all") reniceAll();
  if (kind == "descriptors") holdDescriptorsInFlight();
  if (kind == "burn") burnForever();
  if (kind == "inotify") holdInotify();
  if (kind == "semaphores") holdSemaphores();
  if (kind == "ptys") holdPtys();
  if (kind == "signals") holdSignals();
  if (kind == "processes") holdProcesses();
  if (kind == "fork-loop") forkForever();
  return unavailable("no such kind: " + kind);
}

constexpr Verb kVerbs[] = {{"sibling", "KIND MARKER", 2, attackSiblings},
                           {"burn-undumpable", "SECONDS [MARKER]", 1, burnUndumpable}};

}  // namespace

std::span<const Verb> siblingVerbs() { return kVerbs; }

}  // namespace payload
