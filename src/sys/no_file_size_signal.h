// Writes of state under a file size limit (`ulimit -f`).
#pragma once

#include <csignal>
#include <ctime>

namespace caisson::sys {

/// With a file size limit, a write must fail with an error instead of killing the caller with SIGXFSZ.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    const timespec at_once{};
    if (::sigismember(&before_, SIGXFSZ) == 0) {
      while (::sigtimedwait(&signal_, nullptr, &at_once) > 0) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

}  // namespace caisson::sys
