// The caller's terminal during an interactive run: raw while the sandbox's own pty does the line editing.
#pragma once

#include <termios.h>

#include "caisson/run.h"
#include "supervise/launch.h"

namespace caisson::supervise {

/// Which of our standard streams are terminals, and their size.
TerminalStreams observeTerminal(const Request& request);

/// Passes our terminal's size on to the pty behind `master`.
void copyTerminalSize(int master);

/// Puts our standard input, if it is a terminal, into raw mode for as long as this lives.
class RawTerminal {
 public:
  explicit RawTerminal(const TerminalStreams& wish);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  bool active_ = false;
  termios before_{};
};

}  // namespace caisson::supervise
