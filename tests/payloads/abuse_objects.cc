// Allocates kernel objects and processes of one kind until it is stopped, up to a bound from the caller.
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

#include "payload.h"
#include "send_descriptors.h"

namespace payload {
namespace {

constexpr long kHoldMs = 400;

long most(const Arguments& arguments) { return std::atol(arguments[0].c_str()); }

/// Calls `one` until it fails or the requested number is reached.
template <class Take>
int takeUntilRefused(std::string_view call, const Arguments& arguments, Take one) {
  for (long have = 0; have < most(arguments); ++have) {
    if (one(have) >= 0) continue;
    const int error = errno;
    pauseFor(kHoldMs);
    return refused(call, error);
  }
  pauseFor(kHoldMs);
  return done(arguments[0]);
}

/// Watches on files that it creates in DIRECTORY.
int takeWatches(const Arguments& arguments) {
  const int queue = inotify_init1(IN_CLOEXEC);
  if (queue < 0) return refused("inotify_init1");
  return takeUntilRefused("watch", arguments, [&](long number) {
    const std::string path = arguments[1] + "/w" + std::to_string(number);
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    close(fd);
    return inotify_add_watch(queue, path.c_str(), IN_ALL_EVENTS);
  });
}

int takeTimers(const Arguments& arguments) {
  return takeUntilRefused("timer_create", arguments, [](long) {
    timer_t timer{};
    return timer_create(CLOCK_MONOTONIC, nullptr, &timer);
  });
}

int takePosixQueues(const Arguments& arguments) {
  return takeUntilRefused("mq_open", arguments, [](long number) {
    return mq_open(("/q" + std::to_string(number)).c_str(), O_CREAT | O_RDWR, 0600, nullptr);
  });
}

int takeKeys(const Arguments& arguments) {
  return takeUntilRefused("add_key", arguments, [](long number) {
    const std::string name = "k" + std::to_string(number);
    return syscall(SYS_add_key, "user", name.c_str(), "x", 1, -3 /* session keyring */);
  });
}

int takeDescriptors(const Arguments& arguments) {
  return takeUntilRefused("dup", arguments, [](long) { return dup(1); });
}

/// Descriptors in no table: sent, not received, and closed by the sender. The receiving ends stay open, since the
/// kernel collects what can no longer be received.
int takeInFlight(const Arguments& arguments) {
  return takeUntilRefused("sendmsg", arguments, [](long) {
    const int sent_file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int ends[2];
    if (sent_file < 0 || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    const ssize_t sent = sendCopies(ends[0], sent_file, 64);
    const int error = errno;
    close(ends[0]);
    close(sent_file);
    errno = error;
    return sent < 0 ? -1 : 0;
  });
}

/// Keeps COUNT descriptors in flight, or as many as it gets, for SECONDS; creates FILE when they are. Sends the maximum
/// number per message, so that the count exceeds the sender's own limit.
int holdInFlight(const Arguments& arguments) {
  constexpr int kEach = 250;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return refused("socketpair");
  for (long have = 0; have < most(arguments); have += kEach) {
    if (sendCopies(ends[0], STDOUT_FILENO, kEach) < 0) {
      if (errno == ETOOMANYREFS) break;  // these are all it can have
      return refused("sendmsg");
    }
  }
  close(open(arguments[1].c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
  pauseFor(std::atol(arguments[2].c_str()) * 1000);
  return done();
}

int takeInotify(const Arguments& arguments) {
  return takeUntilRefused("inotify_init1", arguments, [](long) { return inotify_init1(IN_CLOEXEC); });
}

/// Contexts of the old asynchronous I/O: the kernel has one table for the whole machine.
int takeAio(const Arguments& arguments) {
  return takeUntilRefused("io_setup", arguments, [](long) {
    unsigned long context = 0;
    return static_cast<int>(syscall(SYS_io_setup, 16, &context));
  });
}

int takePtys(const Arguments& arguments) {
  return takeUntilRefused("posix_openpt", arguments, [](long) { return posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC); });
}

int takeThreads(const Arguments& arguments) {
  return takeUntilRefused("pthread_create", arguments, [](long) {
    pthread_t thread{};
    const auto wait = [](void*) -> void* {
      pauseFor(30'000);
      return nullptr;
    };
    const int error = pthread_create(&thread, nullptr, wait, nullptr);
    errno = error;
    return error == 0 ? 0 : -1;
  });
}

int takeProcesses(const Arguments& arguments) {
  return takeUntilRefused("fork", arguments, [](long) {
    const pid_t child = fork();
    if (child == 0) {
      close(STDOUT_FILENO);  // its reader would wait for this process
      close(STDERR_FILENO);
      pauseFor(30'000);
      _exit(0);
    }
    return child;
  });
}

/// Exited, but never waited for.
int takeZombies(const Arguments& arguments) {
  return takeUntilRefused("fork", arguments, [](long) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    return child;
  });
}

double secondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void burnFor(double seconds) {
  while (secondsOf(CLOCK_PROCESS_CPUTIME_ID) < seconds) {
  }
}

/// Uses CPU time with several processes in parallel, none of which uses much.
int burnTree(const Arguments& arguments) {
  const double seconds = std::atof(arguments[0].c_str());
  for (int i = 0; i < 4; ++i) {
    if (fork() == 0) {
      burnFor(seconds / 4);
      _exit(0);
    }
  }
  while (wait(nullptr) > 0) {
  }
  return done();
}

/// Runs one process after another, each for `each` seconds, and the kernel reaps them automatically: only a cgroup or a
/// perf event counts their time.
int burnUnreaped(double seconds, double each) {
  signal(SIGCHLD, SIG_IGN);
  for (double have = 0; have < seconds; have += each) {
    const pid_t child = fork();
    if (child < 0) return refused("fork");
    if (child == 0) {
      burnFor(each);
      _exit(0);
    }
    while (kill(child, 0) == 0) pauseFor(1);
  }
  return done();
}

double secondsFrom(const std::string& milliseconds) { return std::atof(milliseconds.c_str()) / 1000; }

int burnUnseen(const Arguments& arguments) {
  return burnUnreaped(std::atof(arguments[0].c_str()), secondsFrom(arguments[1]));
}

/// Same, with processes whose /proc files belong to root.
int burnHidden(const Arguments& arguments) {
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return refused("prctl");
  prctl(PR_TASK_PERF_EVENTS_DISABLE);  // must not stop the supervisor's counters
  return burnUnseen(arguments);
}

/// Same, with a program that is executable but not readable, which makes the kernel drop perf events: a copy of itself
/// in DIRECTORY.
int burnUnreadable(const Arguments& arguments) {
  const std::string copy = arguments[2] + "/unreadable";
  const int to = open(copy.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
  const std::string program = contentOf("/proc/self/exe");
  if (to < 0 || write(to, program.data(), program.size()) != static_cast<ssize_t>(program.size()))
    return refused("write");
  if (fchmod(to, 0111) != 0) return refused("fchmod");
  close(to);
  execl(copy.c_str(), copy.c_str(), "burn-unseen", arguments[0].c_str(), arguments[1].c_str(), nullptr);
  return refused("execve");
}

constexpr Verb kVerbs[] = {
    {"take-watches", "COUNT DIRECTORY", 2, takeWatches},
    {"take-timers", "COUNT", 1, takeTimers},
    {"take-posix-queues", "COUNT", 1, takePosixQueues},
    {"take-keys", "COUNT", 1, takeKeys},
    {"take-descriptors", "COUNT", 1, takeDescriptors},
    {"take-in-flight", "COUNT", 1, takeInFlight},
    {"take-threads", "COUNT", 1, takeThreads},
    {"take-processes", "COUNT", 1, takeProcesses},
    {"take-zombies", "COUNT", 1, takeZombies},
    {"burn-tree", "SECONDS", 1, burnTree},
    {"burn-unseen", "SECONDS EACH_MS", 2, burnUnseen},
    {"burn-hidden", "SECONDS EACH_MS", 2, burnHidden},
    {"hold-in-flight", "COUNT FILE SECONDS", 3, holdInFlight},
    {"take-inotify", "COUNT", 1, takeInotify},
    {"take-aio", "COUNT", 1, takeAio},
    {"take-ptys", "COUNT", 1, takePtys},
    {"burn-unreadable", "SECONDS EACH_MS DIRECTORY", 3, burnUnreadable},
};

}  // namespace

std::span<const Verb> abuseObjectVerbs() { return kVerbs; }

}  // namespace payload
