// A command in a sandbox, as long as somebody may ask for it: while it runs, and for a while after.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "caisson/session.h"
#include "sys/fd.h"

namespace caisson::mcp {

class Execution {
 public:
  using Clock = std::chrono::steady_clock;
  using Run = std::function<Result<RunResult>(const ExecRequest&)>;

  Execution(std::string id, std::string command);

  /// Runs the command to its end, in the caller's thread. Its output is kept, up to the sandbox's output limit.
  void perform(ExecRequest request, const Run& run);

  /// Ends the command with its whole tree of processes.
  void kill();
  /// Wakes everybody who waits.
  void wake();
  /// Waits until it has ended, `stop` says so, or the time is over. Whether it has ended.
  bool wait(Clock::time_point until, const std::function<bool()>& stop);

  struct View {
    bool running = true;
    std::string out, err;                     ///< all that is kept
    std::optional<Result<RunResult>> result;  ///< its end; the streams in it are empty
    double seconds = 0;                       ///< that it has run, or ran
  };
  [[nodiscard]] View view() const;
  /// The end of what it wrote last, for progress.
  [[nodiscard]] std::string lastLine() const;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& command() const { return command_; }
  [[nodiscard]] bool running() const;

 private:
  std::string id_;
  std::string command_;
  sys::Fd cancel_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_, err_;
  std::optional<Result<RunResult>> result_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point end_{};
};

}  // namespace caisson::mcp
