// Hides files of a sandbox that is running.
//
// A process of ours enters the sandbox's user and mount namespaces and mounts an unreadable file over each. It never
// enters through a process of the payload, which could refuse: setns() fails for a process whose first thread has
// exited. What already has the file open keeps it.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::supervise {

inline constexpr std::size_t kMaxMasksAtOnce = 64;

/// A second view of the workspace or of a part of it, with separate mounts.
struct MaskCopy {
  std::string directory;  ///< a path inside the sandbox; of a single file if the part is one
  std::string part;       ///< relative to the workspace; empty: all of it
};

struct MaskTarget {
  std::string directory;           ///< a path inside the sandbox
  std::vector<std::string> paths;  ///< relative to it; resolved there without following links; at most kMaxMasksAtOnce
  uid_t uid = 0;                   ///< of the sandbox's user, inside
  gid_t gid = 0;
  std::vector<MaskCopy> copies = {};  ///< in these the paths are masked as well
  /// Files that are mount points and stay: with other content, or as the user named them.
  std::vector<std::string> kept = {};
};

/// The namespaces that a mask is made in: those of a pid 1 that executed a program of ours, or two descriptors. A pid 1
/// that is a copy of the supervisor cannot be entered: its memory belongs to our user namespace.
struct MaskNamespaces {
  int init = -1;  ///< pidfd; if invalid, the next two
  int user = -1, mount = -1;
};

/// Starts a process that enters the namespaces, makes the masks and writes one byte for each to `report`, all at once:
/// 0 if the path is masked wherever it is shown, or the errno of what failed. Returns its pid, or a negative errno. It
/// sends no exit signal.
long startMaskHelper(const MaskNamespaces& namespaces, const MaskTarget& target, int report);

/// Mounts that are being made. The caller waits for descriptor() to become readable.
class LiveMask {
 public:
  static Result<LiveMask> start(const MaskNamespaces& namespaces, const MaskTarget& target);
  /// For a helper that is a child of another process.
  explicit LiveMask(sys::Fd report) : helper_(-1), report_(std::move(report)) {}

  LiveMask(LiveMask&& other) noexcept;
  LiveMask& operator=(LiveMask&&) = delete;
  ~LiveMask();  ///< kills the process that makes it, if it is our child and not done; waits at most a second

  [[nodiscard]] int descriptor() const { return report_.get(); }
  /// Once it is readable: for each of so many paths 0, or the errno of what failed. ENOENT: there is no such file in
  /// the sandbox; ECANCELED: the helper died without a report.
  std::vector<int> finish(std::size_t paths);

 private:
  LiveMask(pid_t helper, sys::Fd report) : helper_(helper), report_(std::move(report)) {}
  pid_t helper_;
  sys::Fd report_;
};

}  // namespace caisson::supervise
