// Runs one of our programs as a separate process: empty environment, own process group, standard streams at /dev/null,
// no descriptors but the listed ones, all signals blocked. Fast (shares memory until the exec), and safe in a threaded
// application.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

/// The path of the running program, for starting it again.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

inline constexpr std::size_t kMaxHelperDescriptors = 8;

struct HelperOptions {
  std::string path;
  std::vector<std::string> words;  ///< argv; visible to all users, so never a secret
  std::vector<int> descriptors;    ///< become 3, 4 and so on; -1: leave closed
};

class HelperProcess {
 public:
  /// Returns once the program runs; an error if it cannot be executed. EINVAL for more than kMaxHelperDescriptors.
  static Result<HelperProcess> start(const HelperOptions& options);

  HelperProcess() = default;
  HelperProcess(HelperProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  /// Calls end() for the program that this object had.
  HelperProcess& operator=(HelperProcess&& other) noexcept;
  ~HelperProcess() { end(); }

  /// True from start() to end(), even if the program has exited by itself.
  [[nodiscard]] bool started() const { return pid_ >= 0; }
  /// Kills the program and waits for its end. Nothing if it was not started.
  void end();

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
};

}  // namespace caisson::sys
