// Runs a program of the host, such as newuidmap or curl, with default signal handling. Never waits for it without a
// limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

struct HostProgramOptions {
  struct Descriptor {
    int ours, theirs;  ///< our descriptor, and its number (below 16) in the program
  };
  std::vector<std::string> arguments;   ///< argv; visible to all users, so never a secret
  bool search_path = false;             ///< look for arguments[0] in PATH
  bool inherit_environment = false;     ///< otherwise the environment is empty
  std::vector<Descriptor> descriptors;  ///< standard streams that are not listed are /dev/null
};

class HostProgram {
 public:
  /// Starts arguments[0], by path or, with `search_path`, by name.
  static Result<HostProgram> start(const HostProgramOptions& options);

  HostProgram(HostProgram&& other) noexcept : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}
  HostProgram& operator=(HostProgram&&) = delete;
  /// Kills it if it was not waited for.
  ~HostProgram() { end(); }

  /// Readable when the program has exited.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  /// The wait status, or nothing if the program did not exit in time; it is killed then.
  std::optional<int> wait(std::chrono::milliseconds timeout);

 private:
  explicit HostProgram(pid_t pid) : pid_(pid) {}
  /// Kills the program and waits for its end, unless it was waited for already.
  void end();
  /// Waits for the exit and returns the wait status.
  int reap();

  pid_t pid_ = -1;
  Fd pidfd_;
};

}  // namespace caisson::sys
