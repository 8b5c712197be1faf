// Moves bytes from one socket to another with splice. A connection has one Flow for each direction.
#pragma once

#include <cstdint>

#include "egress/pipes.h"

namespace caisson::egress {

/// One direction.
class Flow {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< nothing to do until a socket is ready
    more,     ///< stopped early, so that other connections can run
    ended,    ///< the sender closed and everything was delivered
    broken,   ///< an error of a socket, or no pipe was available
  };

  /// Moves bytes from one socket to the other until one of them would block or the share of a turn is used up. Shuts
  /// down writing to `to` when the sender has closed. Reads at most `allowance` bytes; what was read before is
  /// delivered.
  State pump(PipePool& pipes, int from, int to, std::uint64_t allowance = ~std::uint64_t{0});
  /// Marks the source as possibly readable or closed. Once pump() has found nothing to read, it does not try again
  /// before this call.
  void setReadable() { readable_ = true; }
  /// Gives the pipe back; one that still holds bytes is closed, and they are lost.
  void release(PipePool& pipes);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }                ///< delivered so far
  [[nodiscard]] std::uint64_t bytesRead() const { return bytes_ + inside_; }  ///< from the sender so far
  [[nodiscard]] bool ended() const { return ended_; }
  /// For callers that poll: what pump() waits for, after it returned State::waiting.
  [[nodiscard]] bool wantsRead() const { return !sender_ended_ && inside_ == 0; }
  [[nodiscard]] bool wantsWrite() const { return inside_ > 0; }

 private:
  Pipe pipe_;
  std::size_t inside_ = 0;   ///< bytes in the pipe
  std::uint64_t bytes_ = 0;  ///< delivered
  bool readable_ = true;
  bool sender_ended_ = false;  ///< end of file was read
  bool ended_ = false;         ///< and everything was delivered
};

}  // namespace caisson::egress
