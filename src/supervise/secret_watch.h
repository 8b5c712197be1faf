// Hides secret files that the host creates in the workspace while a sandbox runs.
//
// inotify tells that something appeared; the same scan as before the launch decides what it is. Between the creation of
// a file and its mask lies about a millisecond in which the sandbox can open it.
//
// For workspaces that the sandbox does not write to directly. In `rw` a file that the program made for itself could not
// be told from one of the host's, and would vanish under it.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/live_mask.h"
#include "supervise/workspace_scan.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

class SecretWatch {
 public:
  /// `plan.watched` must be set; `init` is the sandbox's pid 1. `upper`: where an overlay keeps the sandbox's own
  /// files, or -1. All of them must outlive the watch.
  SecretWatch(sys::EventLoop& loop, const plan::Plan& plan, pid_t init, int upper);
  ~SecretWatch();
  SecretWatch(const SecretWatch&) = delete;
  SecretWatch& operator=(const SecretWatch&) = delete;

  /// Starts a moment later, so that a short command does not pay for it.
  void begin();

  /// What was hidden, and what could not be: sentences for the result.
  void report(std::vector<std::string>& notices, std::vector<std::string>& warnings) const;

 private:
  using Clock = sys::EventLoop::Clock;

  void watchTree();
  void onEvents();
  void scheduleScan(Clock::time_point earliest);
  void scan();
  bool addWatches();
  void consider(const std::string& path);
  void maskNext();
  void onMasked();

  sys::EventLoop& loop_;
  const plan::Plan& plan_;
  pid_t init_;
  int upper_;
  sys::Fd inotify_;
  sys::EventLoop::TimerId timer_ = 0;
  ScanCache cache_;
  std::map<int, std::string> watched_;  ///< directories by watch descriptor
  std::set<std::string> directories_;   ///< the same, by name
  std::set<std::string> unwatched_;
  std::set<std::string> hidden_;  ///< for as long as the sandbox lives
  std::set<std::string> masked_;  ///< until the host puts another file in its place
  std::set<std::string> failed_;
  std::map<std::string, int> missing_;  ///< how often a name was not found in the sandbox
  std::vector<std::string> found_;      ///< for the report, in order
  std::deque<std::string> pending_;
  std::optional<LiveMask> mask_;
  std::string masking_;
  Clock::time_point next_scan_{};
};

}  // namespace caisson::supervise
