// The signals a program passes on to its payload.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>

#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// What becomes of the signals that a program gets while a command runs.
struct SignalActions {
  std::function<void(int)> forward;  ///< to the command
  std::function<void()> kill;        ///< after a third request to end, or `grace` after SIGTERM or SIGHUP
  std::function<void()> resize;      ///< our terminal's size has changed
  std::chrono::seconds grace{10};
};

/// Whether the signal requests an end.
bool requestsEnd(int signal);

/// Blocks the signals a program passes on (and SIGPIPE) for this thread while it lives, and reads them from a
/// descriptor.
class SignalRelay {
 public:
  /// Without `forward` only SIGPIPE is held back: a library does not take its caller's signals.
  explicit SignalRelay(bool forward);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  /// Handles signals on `loop`, which must not run after this object is gone.
  void attach(sys::EventLoop& loop, SignalActions actions);

  /// For poll, or -1.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The next signal that came, or 0.
  [[nodiscard]] int next() const;

 private:
  void onSignal(sys::EventLoop& loop, int signal);

  sigset_t before_;
  sys::Fd descriptor_;
  SignalActions actions_;
  int end_requests_ = 0;
  sys::EventLoop::TimerId grace_ = 0;
};

}  // namespace caisson::supervise
