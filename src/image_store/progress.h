// Progress of a long operation: bars on a terminal, one line per step elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::image {

/// Thread-safe. Writes to standard error; nothing if it was created quiet.
class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins a step and returns its number. `total` 0: unknown.
  std::size_t begin(std::string_view text, std::uint64_t total);
  void advance(std::size_t step, std::uint64_t done);
  /// Ends the step with a word such as "done", "exists".
  void end(std::size_t step, std::string_view how);

 private:
  struct Step {
    std::string text;
    std::uint64_t done = 0, total = 0;
    std::string how;
  };
  /// Writes the lines of all running steps over the old ones.
  void draw(bool now);

  std::mutex mutex_;
  std::vector<Step> steps_;
  std::size_t first_ = 0;  ///< earlier steps have ended and their lines stay
  std::size_t drawn_ = 0;  ///< lines on the terminal that belong to running steps
  bool quiet_, terminal_;
  std::chrono::steady_clock::time_point last_;
};

/// "12.3 MB".
std::string readableSize(std::uint64_t bytes);

}  // namespace caisson::image
