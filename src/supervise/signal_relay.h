// The signals a program passes on to its payload.
#pragma once

#include <signal.h>

#include "sys/fd.h"

namespace caisson::supervise {

/// Blocks the signals a program passes on (and SIGPIPE) for this thread while it lives, and reads them from a
/// descriptor.
class SignalRelay {
 public:
  /// Without `forward` only SIGPIPE is held back: a library does not take its caller's signals.
  explicit SignalRelay(bool forward);
  ~SignalRelay();
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  /// For poll, or -1.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// The next signal that came, or 0.
  [[nodiscard]] int next() const;

 private:
  sigset_t before_;
  sys::Fd descriptor_;
};

}  // namespace caisson::supervise
