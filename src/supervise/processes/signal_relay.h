// The signals that a program forwards to its payload.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>

#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Handlers of signals that arrive while a command runs.
struct SignalActions {
  std::function<void(int)> forward;  ///< to the command
  std::function<void()> kill;        ///< after a third termination request, or `grace` after SIGTERM or SIGHUP
  std::function<void()> resize;      ///< the size of our terminal changed
  std::chrono::seconds grace{10};
};

/// Whether the signal requests termination.
bool requestsEnd(int signal);

/// Blocks the forwarded signals (and SIGPIPE) for this thread during its lifetime, and reads them from a descriptor.
class SignalRelay {
 public:
  /// Without `forward` only SIGPIPE is blocked: a library must not take its caller's signals.
  explicit SignalRelay(bool forward);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  /// Handles signals on `loop`, which must not run after this object is destroyed. Does nothing without `forward`.
  void attach(sys::EventLoop& loop, SignalActions actions);

  /// For poll, or -1.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// Returns the next pending signal, or 0.
  [[nodiscard]] int next() const;

 private:
  /// Forwards the signal; SIGWINCH resizes the terminal instead. Kills after repeated requests to end, or when the
  /// grace period after SIGTERM or SIGHUP is over.
  void onSignal(sys::EventLoop& loop, int signal);

  sigset_t before_;
  sys::Fd descriptor_;
  SignalActions actions_;
  int end_requests_ = 0;
  sys::EventLoop::TimerId grace_ = 0;
};

}  // namespace caisson::supervise
