// Many blocked calls: repeated, from several threads, among signals, below the payload's own filters.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "payload.h"

namespace payload {
namespace {

struct Tally {
  std::atomic<long> refused = 0, got_through = 0;
  std::atomic<int> error = 0;

  void call(long number) {
    if (syscall(number, 0, 0, 0, 0, 0, 0) >= 0) {
      ++got_through;
      return;
    }
    error = errno;
    ++refused;
  }
  [[nodiscard]] int report() const {
    if (got_through > 0) return done(std::to_string(got_through));
    return payload::refused(std::to_string(refused) + " calls", error);
  }
};

int repeat(const Arguments& arguments) {
  Tally tally;
  for (long i = 0; i < std::atol(arguments[0].c_str()); ++i) tally.call(std::atol(arguments[1].c_str()));
  return tally.report();
}

int callFromThreads(const Arguments& arguments) {
  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(arguments[0].c_str()); ++i) {
    threads.emplace_back([&] {
      for (long n = 0; n < std::atol(arguments[1].c_str()); ++n) tally.call(std::atol(arguments[2].c_str()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return tally.report();
}

int flood(const Arguments& arguments) {
  Tally tally;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atol(arguments[0].c_str()));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (std::chrono::steady_clock::now() < end) tally.call(std::atol(arguments[1].c_str()));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return tally.report();
}

/// A signal every 100 microseconds, each of which would interrupt a blocking call.
int callAmongSignals(const Arguments& arguments) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  return repeat(arguments);
}

long installFilter(unsigned flags, std::uint32_t answer, long number) {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)},
                        {BPF_RET | BPF_K, 0, 0, answer},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{std::size(code), code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/// The payload's own listener could answer in place of the supervisor.
int takeListener(const Arguments&) {
  const long listener = installFilter(SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_RET_USER_NOTIF, SYS_unshare);
  return report("seccomp", listener);
}

/// Installs a filter that allows everything, then makes the call.
int callBelowOwnFilter(const Arguments& arguments) {
  if (installFilter(0, SECCOMP_RET_ALLOW, 0) < 0) return unavailable("cannot install a filter");
  Tally tally;
  tally.call(std::atol(arguments[0].c_str()));
  return tally.report();
}

constexpr Verb kVerbs[] = {
    {"repeat-call", "COUNT NUMBER", 2, repeat},       {"threaded-calls", "THREADS COUNT NUMBER", 3, callFromThreads},
    {"flood-calls", "MILLISECONDS NUMBER", 2, flood}, {"signalled-calls", "COUNT NUMBER", 2, callAmongSignals},
    {"take-listener", "", 0, takeListener},           {"call-below-own-filter", "NUMBER", 1, callBelowOwnFilter},
};

}  // namespace

std::span<const Verb> violationVerbs() { return kVerbs; }

}  // namespace payload
