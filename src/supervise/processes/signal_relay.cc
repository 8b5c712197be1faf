#include "supervise/processes/signal_relay.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace caisson::supervise {
namespace {

constexpr int kInsistentRequests = 3;

}  // namespace

bool requestsEnd(int signal) { return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT; }

void SignalRelay::attach(sys::EventLoop& loop, SignalActions actions) {
  if (!descriptor_) return;
  actions_ = std::move(actions);
  loop.on(descriptor_.get(), POLLIN, [this, &loop](short) {
    while (const int signal = next()) onSignal(loop, signal);
  });
}

void SignalRelay::onSignal(sys::EventLoop& loop, int signal) {
  if (signal == SIGWINCH) return actions_.resize();
  if (requestsEnd(signal) && ++end_requests_ >= kInsistentRequests) return actions_.kill();
  if ((signal == SIGTERM || signal == SIGHUP) && grace_ == 0) {
    grace_ = loop.at(sys::EventLoop::Clock::now() + actions_.grace, [this] { actions_.kill(); });
  }
  actions_.forward(signal);
}

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
  // A write to a closed pipe left SIGPIPE pending; it was already handled as EPIPE.
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
