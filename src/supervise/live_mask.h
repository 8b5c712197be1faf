// Hides a file of a sandbox that is running.
//
// A process of ours enters the sandbox's user and mount namespaces and mounts an unreadable file over it. Nothing of
// the sandbox is asked and nothing in it can prevent that. What already has the file open keeps it.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// One mount that is being made. The caller waits for descriptor() to become readable.
class LiveMask {
 public:
  /// `path` is relative to `directory`, a path inside the sandbox, and resolved there without following links. `init`
  /// is the sandbox's pid 1; an error when no process of the sandbox can be entered.
  static Result<LiveMask> start(pid_t init, const plan::Identity& identity, const std::string& directory,
                                const std::string& path);

  LiveMask(LiveMask&& other) noexcept;
  LiveMask& operator=(LiveMask&&) = delete;
  ~LiveMask();  ///< kills the process that makes it, if it is not done

  [[nodiscard]] int descriptor() const { return report_.get(); }
  /// Once it is readable: 0, or the errno of what failed. ENOENT: there is no such file in the sandbox.
  int finish();

 private:
  LiveMask(pid_t helper, sys::Fd report) : helper_(helper), report_(std::move(report)) {}
  pid_t helper_;
  sys::Fd report_;
};

}  // namespace caisson::supervise
