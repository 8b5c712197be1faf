// Hides a file of a sandbox that is running.
//
// A process of ours enters the sandbox's user and mount namespaces and mounts an unreadable file over it. Nothing of
// the sandbox is asked and nothing in it can prevent that. What already has the file open keeps it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct MaskTarget {
  std::string directory;  ///< a path inside the sandbox
  std::string path;       ///< relative to it; resolved there without following links
  uid_t uid = 0;          ///< of the sandbox's user, inside
  gid_t gid = 0;
};

/// Starts a process that enters the user and mount namespaces of the process `pidfd`, makes the mask and writes one
/// byte to `report`: 0, or the errno of what failed. Returns its pid, or a negative errno. It sends no exit signal.
long startMaskHelper(int pidfd, const MaskTarget& target, int report);

/// One mount that is being made. The caller waits for descriptor() to become readable.
class LiveMask {
 public:
  /// `init` is the sandbox's pid 1; an error when no process of the sandbox can be entered.
  static Result<LiveMask> start(pid_t init, const MaskTarget& target);
  /// For a helper that is a child of another process.
  explicit LiveMask(sys::Fd report) : helper_(-1), report_(std::move(report)) {}

  LiveMask(LiveMask&& other) noexcept;
  LiveMask& operator=(LiveMask&&) = delete;
  ~LiveMask();  ///< kills the process that makes it, if it is our child and not done; waits at most a second

  [[nodiscard]] int descriptor() const { return report_.get(); }
  /// Once it is readable: 0, or the errno of what failed. ENOENT: there is no such file in the sandbox; ECANCELED: the
  /// helper died without a report.
  int finish();

 private:
  LiveMask(pid_t helper, sys::Fd report) : helper_(helper), report_(std::move(report)) {}
  pid_t helper_;
  sys::Fd report_;
};

}  // namespace caisson::supervise
