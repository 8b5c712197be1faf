// One output stream of the payload: cut at the limit, captured or relayed, with bounded memory.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "caisson/run.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Reads from `source` (a non-blocking pipe or pty) and captures, relays or discards.
///
/// Relaying never blocks: at most one pipe buffer is held, and while the reader of our output is slow the payload waits
/// instead of us, so that timeouts and signals are still handled. `limit` counts all bytes of the stream; the rest is
/// read and dropped, so that a flooding payload does not block either.
class OutputStream {
 public:
  /// Bytes beyond the limit after which the run is killed: some seconds of a program that only writes.
  static constexpr std::uint64_t kFlood = 16ULL << 30;

  OutputStream(sys::Fd source, StreamMode mode, int sink, std::uint64_t limit, std::uint64_t flood = kFlood);

  /// Also passes every kept piece to `observer`.
  void observe(std::function<void(std::string_view)> observer) { observer_ = std::move(observer); }

  /// Adds the poll entry this stream needs now: its sink, its source, or none.
  void addPolls(std::vector<pollfd>& polls) const;
  /// Reads one piece, unless an earlier one is still pending, and writes what the sink takes without blocking.
  void pump();
  /// After the payload's exit: reads the rest of the pipe and writes it. Drops the rest if the reader takes nothing for
  /// `patience_ms`.
  void drain(int patience_ms);

  [[nodiscard]] bool open() const { return source_.valid(); }
  /// Whether there is more to read or to write.
  [[nodiscard]] bool busy() const { return source_.valid() || !pending_.empty(); }
  /// Whether more than `flood` bytes beyond the limit arrived: the run should be killed.
  [[nodiscard]] bool flooded() const;
  /// The last 4 to 8 KiB of the stream, including dropped bytes.
  [[nodiscard]] const std::string& tail() const { return tail_; }
  /// Returns the stream as a result; leaves this object empty.
  Stream take();

 private:
  /// Reads one piece; closes the source at its end.
  void readSome();
  /// Writes one piece of pending_. Call after POLLOUT only, since the sink may block; a failed write closes the source,
  /// so that the payload gets SIGPIPE. False if the sink took nothing.
  bool writeSome();
  /// Counts a piece that was read, and captures or queues the part within the limit.
  void accept(const char* data, std::size_t count);

  std::function<void(std::string_view)> observer_;
  sys::Fd source_;
  StreamMode mode_;
  int sink_;
  sys::Fd own_terminal_;  ///< the sink, if it is a terminal that could be opened again
  std::size_t most_ = 0;  ///< bytes that the sink takes after POLLOUT without blocking
  std::uint64_t limit_, flood_;
  std::uint64_t seen_ = 0;
  Stream result_;
  std::string pending_;      ///< relayed bytes not yet written
  std::size_t written_ = 0;  ///< of pending_
  bool sink_regular_ = false;
  std::string tail_;
};

}  // namespace caisson::supervise
