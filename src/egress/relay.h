// Moves bytes between two sockets without copying them, both ways, until both sides have ended.
#pragma once

#include <cstdint>

#include "egress/pipes.h"

namespace caisson::egress {

/// One direction.
class Flow {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< nothing to do until a socket is ready
    more,     ///< stopped in the middle, to let others have their turn
    ended,    ///< the sender ended and everything was delivered
    broken,
  };

  State pump(PipePool& pipes, int from, int to);
  /// There may be something to read, or an end to see. Until somebody says so again after pump() found nothing, it does
  /// not try.
  void setReadable() { readable_ = true; }
  void release(PipePool& pipes);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  Pipe pipe_;
  std::size_t inside_ = 0;
  std::uint64_t bytes_ = 0;
  bool readable_ = true;
  bool sender_ended_ = false;
  bool ended_ = false;
};

}  // namespace caisson::egress
