// Relays the standard streams of a command between its pipes or pty and our descriptors, on an event loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caisson/run.h"
#include "supervise/launch.h"
#include "supervise/streams/input_feed.h"
#include "supervise/streams/stream.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

inline constexpr std::uint64_t kNoOutputLimit = ~0ULL;

class StreamRelay {
 public:
  /// The command reads `input` first; with `relay_stdin` then our own standard input.
  StreamRelay(sys::EventLoop& loop, std::string input, bool relay_stdin)
      : loop_(loop), input_(std::move(input), relay_stdin) {}
  ~StreamRelay() { unwatchAll(); }
  StreamRelay(const StreamRelay&) = delete;
  StreamRelay& operator=(const StreamRelay&) = delete;

  /// The write end of the command's standard input, non-blocking. Without one the command has a pty or no input.
  void setInput(sys::Fd pipe);
  /// The read end of its standard output (1) or error (2), non-blocking. Relayed streams go to our descriptor of the
  /// same number, without a limit if that is a terminal. `observer` also gets each piece within the limit.
  void setOutput(int stream, sys::Fd source, StreamMode mode, std::uint64_t limit,
                 std::function<void(std::string_view)> observer = {});
  /// The master side of the command's pty; its output goes to our standard output if that is a terminal, else to
  /// standard error.
  void setTerminal(sys::Fd master, const TerminalStreams& streams);
  /// Forwards our terminal's size.
  void resizeTerminal() const;

  /// Starts relaying. `on_flood` is called when a stream exceeds its limit by far: the command should be killed.
  void start(std::function<void()> on_flood);
  /// While a prompt is on the terminal: the command can neither draw over it nor read the answer.
  void setPaused(bool paused);

  /// Whether output is still to be read or written.
  [[nodiscard]] bool busy() const { return (out_ && out_->busy()) || (err_ && err_->busy()); }
  /// After the command's exit: writes the rest. Drops the rest of a stream whose reader takes nothing for `timeout_ms`.
  void drain(int timeout_ms);
  /// The last few KiB of standard output (1) or error (2).
  [[nodiscard]] std::string tail(int stream) const;
  /// Moves captured output and counts into the result.
  void take(RunResult& result);

 private:
  enum class Part : std::uint8_t { input, out, err };

  void update();
  void unwatchAll();
  /// A descriptor is ready: moves data, and reports output that exceeds its limit by far (flooded()).
  void onEvents(int descriptor, short events);

  sys::EventLoop& loop_;
  InputFeed input_;
  std::optional<OutputStream> out_, err_;
  sys::Fd terminal_;
  bool started_ = false, paused_ = false;
  std::function<void()> on_flood_;
  std::vector<pollfd> polls_;
  std::vector<Part> parts_;       ///< the owner of each entry of polls_
  std::map<int, short> watched_;  ///< in the loop
};

}  // namespace caisson::supervise
