#include "supervise/signal_relay.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace caisson::supervise {

SignalRelay::SignalRelay(bool forward) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  if (forward) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH})
      ::sigaddset(&wanted, signal);
  }
  sigset_t blocked = wanted;
  ::sigaddset(&blocked, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  if (forward) descriptor_ = sys::Fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalRelay::~SignalRelay() {
  // A write to a reader that is gone left SIGPIPE pending; it was answered as EPIPE already.
  if (::sigismember(&before_, SIGPIPE) == 0) {
    sigset_t pipe;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    const timespec none{};
    while (::sigtimedwait(&pipe, nullptr, &none) > 0) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalRelay::next() const {
  signalfd_siginfo info{};
  return ::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace caisson::supervise
