// The memory that the output of all commands of this server takes together. A model decides how many commands run and
// what they write, and the server is outside the limits of its sandboxes.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>

namespace caisson::mcp {

class Execution;

/// Output that is kept in memory, of all commands together.
inline constexpr std::size_t kMaxOutputKept = std::size_t{64} << 20U;

/// For the model.
inline constexpr std::string_view kOutputGone =
    "The output of this command is no longer kept: this server keeps 64 MiB of output, that of the newest commands. "
    "Run "
    "it again with its output in a file if you need it.";

class OutputBudget {
 public:
  explicit OutputBudget(std::size_t bytes) : limit_(bytes) {}

  /// Takes up to `wanted` bytes and returns how many. Drops the output of ended commands to make room, oldest first. Do
  /// not hold the mutex of an Execution.
  std::size_t take(std::size_t wanted);
  void give(std::size_t bytes) { taken_ -= bytes; }
  /// This command ended: its output may be dropped from now on.
  void noteEnd(const std::shared_ptr<Execution>& execution);

  [[nodiscard]] std::size_t taken() const { return taken_; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> taken_ = 0;
  std::mutex mutex_;
  std::deque<std::weak_ptr<Execution>> ended_;  ///< oldest first
};

}  // namespace caisson::mcp
