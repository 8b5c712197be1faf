// One stream of the payload on its way out: cut at the limit, kept or passed on, never growing our memory.
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
/// Relaying never blocks: at most one pipe buffer is held, and while the reader of our output is slow the payload
/// waits instead of us, so that time-outs and signals are still served. `limit` counts all bytes of the stream; what
/// lies beyond is read and dropped, so that a flooding payload is not stuck either.
class OutputStream {
 public:
  /// Bytes beyond the limit after which nobody can want the rest: some seconds of a program that does nothing else.
  static constexpr std::uint64_t kFlood = 16ULL << 30;

  OutputStream(sys::Fd source, StreamMode mode, int sink, std::uint64_t limit, std::uint64_t flood = kFlood);

  /// Also hands every kept piece to `observer` as it comes.
  void observe(std::function<void(std::string_view)> observer) { observer_ = std::move(observer); }

  /// The poll entries this stream needs now (0, 1 or 2).
  void addPolls(std::vector<pollfd>& polls) const;
  /// Moves what can be moved.
  void pump();
  /// After the payload's end: takes what is left in the pipe and writes it, waiting for the reader at most `patience`.
  void drain(int patience_ms);

  [[nodiscard]] bool open() const { return source_.valid(); }
  /// Whether there is still something to come or to pass on.
  [[nodiscard]] bool busy() const { return source_.valid() || !pending_.empty(); }
  /// More than `flood` bytes beyond the limit came: the run should end.
  [[nodiscard]] bool flooded() const;
  /// The last bytes that came, 4 to 8 KiB of them, whatever became of them.
  [[nodiscard]] const std::string& tail() const { return tail_; }
  /// The stream as a result; leaves this object empty.
  Stream take();

 private:
  void readSome();
  void writeSome();
  void accept(const char* data, std::size_t count);

  std::function<void(std::string_view)> observer_;
  sys::Fd source_;
  StreamMode mode_;
  int sink_;
  std::uint64_t limit_, flood_;
  std::uint64_t seen_ = 0;
  Stream result_;
  std::string pending_;      ///< relayed bytes not yet written
  std::size_t written_ = 0;  ///< of pending_
  bool sink_regular_ = false;
  std::string tail_;
};

}  // namespace caisson::supervise
