#include "support/watchdog.h"

#include <execinfo.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace caisson::test {
namespace {

// The test programs use no other real-time signal.
int watchdogSignal() { return SIGRTMAX - 1; }

pid_t watched_process = 0;
char test_name[256] = "";

void print(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

/// Runs in a signal handler of a hung process that is about to abort, so the calls below need not be async-signal-safe.
void reportHungTest(int) {
  if (::getpid() != watched_process) return;  // a forked child inherits the handler, not the timer
  print("\n[  HUNG    ] ");
  print(test_name);
  print("\n");
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), STDERR_FILENO);
  const pid_t child = ::fork();
  if (child == 0) {
    char command[128];
    std::snprintf(command, sizeof(command), "ps -o pid,ppid,stat,wchan:32,args --forest -g %d", ::getpgrp());
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command, nullptr);
    ::_exit(127);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
  std::abort();
}

class Watchdog : public testing::EmptyTestEventListener {
 public:
  explicit Watchdog(std::chrono::seconds limit) : limit_(limit) {
    struct sigaction action{};
    action.sa_handler = reportHungTest;
    ::sigaction(watchdogSignal(), &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = watchdogSignal();
    armed_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  }

  void OnTestStart(const testing::TestInfo& info) override {
    std::snprintf(test_name, sizeof(test_name), "%s.%s", info.test_suite_name(), info.name());
    watched_process = ::getpid();
    set(limit_);
  }
  void OnTestEnd(const testing::TestInfo&) override { set(std::chrono::seconds(0)); }

 private:
  void set(std::chrono::seconds time) {
    const itimerspec value{.it_interval = {}, .it_value = {.tv_sec = time.count(), .tv_nsec = 0}};
    if (armed_) ::timer_settime(timer_, 0, &value, nullptr);
  }

  std::chrono::seconds limit_;
  timer_t timer_{};
  bool armed_ = false;
};

}  // namespace

void abortHungTests(std::chrono::seconds limit) {
  testing::UnitTest::GetInstance()->listeners().Append(new Watchdog(limit));  // owned by GoogleTest
}

void abortHungTests() {
  const char* limit = std::getenv("CAISSON_TEST_SECONDS");
  abortHungTests(std::chrono::seconds(limit != nullptr ? std::atoi(limit) : CAISSON_TEST_SECONDS));
}

}  // namespace caisson::test
