// A command in a sandbox: while it runs, and for some time after, so that clients can query it.
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

  /// Runs the command to its end, in the caller's thread. Its output is kept, per stream up to the sandbox's output
  /// limit and at most 4 MiB.
  void perform(ExecRequest request, const Run& run);

  /// Requests that the command is killed with its whole process tree; does not wait. perform() then returns.
  void kill();
  /// Makes all wait() calls check their `stop` again.
  void wake();
  /// Waits until it ended, `stop` returns true, or the time expires; returns whether it ended. `stop` is called under
  /// the lock: it must not call this object.
  bool wait(Clock::time_point until, const std::function<bool()>& stop);

  struct View {
    bool running = true;
    std::string out, err;                     ///< everything that is kept
    std::optional<Result<RunResult>> result;  ///< set at its end; the streams in it are empty
    double seconds = 0;                       ///< since its creation, or until its end; waiting for a thread included
  };
  [[nodiscard]] View view() const;
  /// The last line of standard output, or of standard error if that is empty, for progress. At most its last 200 bytes.
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
