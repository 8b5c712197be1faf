// A program of ours as a process of its own: no environment, no descriptor but those that are named, none of our
// signals. Quick (memory is shared until the exec), and safe in an application with threads.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

inline constexpr std::size_t kMaxHelperDescriptors = 8;

struct HelperOptions {
  std::string path;
  std::vector<std::string> words;  ///< its arguments, the first included; seen by everybody, so never a secret
  std::vector<int> descriptors;    ///< what it finds at 3, 4 and so on; -1: nothing there
};

class HelperProcess {
 public:
  /// An error when the program can't be executed.
  static Result<HelperProcess> start(const HelperOptions& options);

  HelperProcess() = default;
  HelperProcess(HelperProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  HelperProcess& operator=(HelperProcess&& other) noexcept;
  ~HelperProcess() { end(); }

  [[nodiscard]] bool started() const { return pid_ >= 0; }
  /// Kills it and waits for it.
  void end();

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
};

}  // namespace caisson::sys
