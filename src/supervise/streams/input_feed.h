// Standard input of the payload: given bytes first, then our own standard input.
#pragma once

#include <poll.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sys/fd.h"

namespace caisson::supervise {

/// Whether a payload needs a pipe as standard input: if `first`, the bytes for it, is not empty, or if our standard
/// input is relayed and is not /dev/null. Else it gets /dev/null.
bool hasInput(bool relay, const std::string& first);

/// Never blocks, and holds at most one buffer: while the payload does not read, our standard input is not read either.
class InputFeed {
 public:
  InputFeed(std::string first, bool relay) : pending_(std::move(first)), ended_(!relay) {}

  /// The write end of the payload's pipe, non-blocking; closed at the end of input or when the reader closed it.
  void usePipe(sys::Fd pipe) { pipe_ = std::move(pipe); }
  /// The master side of the payload's pty; not owned.
  void useTerminal(int master) { terminal_ = master; }

  /// Adds the descriptors to poll; `pump` finds its entries in the same vector. Closes the pipe at the end of input.
  void addPolls(std::vector<pollfd>& polls);
  /// Reads and writes what `polls`, filled by poll(), reports as ready.
  void pump(const std::vector<pollfd>& polls);

 private:
  [[nodiscard]] int sink() const { return pipe_ ? pipe_.get() : terminal_; }
  /// Reads one piece of our standard input into pending_, which is empty.
  void readSome();
  /// Writes as much of pending_ as possible.
  void writeSome();
  /// The payload does not read any more: drops pending input and closes the pipe.
  void giveUp();

  std::string pending_;
  std::size_t written_ = 0;  ///< of pending_
  bool ended_;               ///< end of input
  sys::Fd pipe_;
  int terminal_ = -1;
  std::size_t first_poll_ = 0;
};

}  // namespace caisson::supervise
