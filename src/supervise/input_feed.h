// Standard input on its way to the payload: some bytes given ahead, then what our own standard input has.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sys/fd.h"

namespace caisson::supervise {

/// Whether a payload needs a pipe at all: standard input that has nothing to give (/dev/null) is replaced by a null
/// device of the payload's own.
bool hasInput(bool relay, const std::string& first);

/// Never blocks, and holds one buffer at most: while the payload does not read, nobody reads our standard input.
class InputFeed {
 public:
  InputFeed(std::string first, bool relay) : pending_(std::move(first)), ended_(!relay) {}

  /// The write end of the payload's pipe, non-blocking; closed when there is no more to give or nobody reads.
  void usePipe(sys::Fd pipe) { pipe_ = std::move(pipe); }
  /// The master side of the payload's pty, which stays its owner's.
  void useTerminal(int master) { terminal_ = master; }

  /// Adds what to wait for; `pump` finds its entries again in the same vector.
  void addPolls(std::vector<pollfd>& polls);
  void pump(const std::vector<pollfd>& polls);

 private:
  [[nodiscard]] int sink() const { return pipe_ ? pipe_.get() : terminal_; }
  void readSome();
  void writeSome();
  void giveUp();

  std::string pending_;
  std::size_t written_ = 0;  ///< of pending_
  bool ended_;               ///< nothing more will come
  sys::Fd pipe_;
  int terminal_ = -1;
  std::size_t first_poll_ = 0;
};

}  // namespace caisson::supervise
