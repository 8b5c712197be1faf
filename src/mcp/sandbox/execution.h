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
#include <vector>

#include "caisson/session.h"
#include "mcp/sandbox/output_budget.h"
#include "sys/fd.h"

namespace caisson::mcp {

class Execution {
 public:
  using Clock = std::chrono::steady_clock;
  using Run = std::function<Result<RunResult>(const ExecRequest&)>;

  Execution(std::string id, std::string command, std::shared_ptr<OutputBudget> budget);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// Runs the command to its end, in the caller's thread. Its output is kept, per stream up to the sandbox's output
  /// limit, at most 4 MiB, and no more than the budget has.
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
    std::string out, err;                            ///< everything that is kept
    std::uint64_t out_dropped = 0, err_dropped = 0;  ///< bytes that are not kept, beyond those of the sandbox's limit
    bool output_gone = false;                        ///< dropOutput() was called
    std::optional<Result<RunResult>> result;         ///< set at its end; the streams in it are empty
    double seconds = 0;  ///< since its creation, or until its end; waiting for a thread included
  };
  [[nodiscard]] View view() const;
  /// What was denied to the command; empty while it runs.
  [[nodiscard]] std::vector<Denial> denials() const;
  /// Frees the output of a command that ended.
  void dropOutput();
  /// The memory that its output takes.
  [[nodiscard]] std::size_t heldBytes() const;
  /// The last line of standard output, or of standard error if that is empty, for progress. At most its last 200 bytes.
  [[nodiscard]] std::string lastLine() const;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& command() const { return command_; }
  [[nodiscard]] bool running() const;

 private:
  struct Kept {
    std::string data;
    std::uint64_t dropped = 0;
  };
  /// Adds a piece of output; only the thread in perform() calls it.
  void keep(Kept& kept, std::string_view piece);

  std::string id_;
  std::string command_;
  sys::Fd cancel_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<OutputBudget> budget_;
  Kept out_, err_;
  bool output_gone_ = false;
  std::optional<Result<RunResult>> result_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point end_{};
};

}  // namespace caisson::mcp
