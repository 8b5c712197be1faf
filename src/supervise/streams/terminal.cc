#include "supervise/streams/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace caisson::supervise {
namespace {

bool currentSize(winsize& size) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) return true;
  }
  return false;
}

}  // namespace

TerminalStreams observeTerminal(const Request& request) {
  TerminalStreams streams;
  streams.stream[0] = request.relay_stdin && ::isatty(STDIN_FILENO) == 1;
  streams.stream[1] = request.out == StreamMode::relay && ::isatty(STDOUT_FILENO) == 1;
  streams.stream[2] = request.err == StreamMode::relay && ::isatty(STDERR_FILENO) == 1;
  if (!streams.stream[0]) return {};  // no user at a terminal
  winsize size{};
  if (currentSize(size)) {
    streams.rows = size.ws_row;
    streams.columns = size.ws_col;
  }
  return streams;
}

void copyTerminalSize(int master) {
  winsize size{};
  if (currentSize(size)) ::ioctl(master, TIOCSWINSZ, &size);
}

RawTerminal::RawTerminal(const TerminalStreams& streams) {
  if (!streams.stream[0] || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios raw = before_;
  ::cfmakeraw(&raw);
  active_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

RawTerminal::~RawTerminal() {
  if (active_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

}  // namespace caisson::supervise
