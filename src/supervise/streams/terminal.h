// The caller's terminal during an interactive run: raw while the sandbox's pty does the line editing.
#pragma once

#include <termios.h>

#include "caisson/run.h"
#include "supervise/launch.h"

namespace caisson::supervise {

/// Which of our standard streams the request relays and are terminals, and the terminal's size. None of them, if
/// standard input is not one.
TerminalStreams observeTerminal(const Request& request);

/// Forwards our terminal's size to the pty behind `master`.
void copyTerminalSize(int master);

/// Puts our standard input, if it is a terminal, into raw mode during its lifetime.
class RawTerminal {
 public:
  explicit RawTerminal(const TerminalStreams& streams);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  bool active_ = false;
  termios before_{};
};

}  // namespace caisson::supervise
