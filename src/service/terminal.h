// A command on a terminal in a sandbox, for a client that is not on a terminal of this machine.
//
// Session::exec() relays the terminal of its process. So each terminal gets a process: this program again, with one end
// of a new pty as its standard streams. When the client closes its end, that process gets SIGHUP and ends the command.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"
#include "caisson/session.h"
#include "sys/fd.h"

namespace caisson::service {

/// The hidden first argument of such a process.
inline constexpr std::string_view kTerminalWord = "__terminal";

struct TerminalOptions {
  std::string sandbox;
  ExecRequest request;  ///< command, environment, working_directory, timeout_seconds
  std::uint16_t rows = 24, columns = 80;
};

class Terminal {
 public:
  Terminal(Terminal&& other) noexcept
      : master_(std::move(other.master_)), result_(std::move(other.result_)), pid_(std::exchange(other.pid_, -1)) {}
  Terminal& operator=(Terminal&&) = delete;
  /// Kills the process if finish() was not called.
  ~Terminal();
  static Result<Terminal> start(const TerminalOptions& options);

  /// The client's end, non-blocking. Closing it ends the command.
  [[nodiscard]] int descriptor() const { return master_.get(); }
  sys::Fd takeDescriptor() { return std::move(master_); }
  /// Waits at most ten seconds for the process, and returns the result as JSON; empty if there is none.
  std::string finish();

 private:
  Terminal() = default;

  sys::Fd master_, result_;
  pid_t pid_ = -1;
};

void resizeTerminal(int descriptor, std::uint16_t rows, std::uint16_t columns);

/// The process itself: reads its options from descriptor 3, writes the result to 4. Returns the exit status.
int terminalMain();

}  // namespace caisson::service
