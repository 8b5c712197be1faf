// Hides secret files that the host creates in the workspace while a sandbox runs.
//
// inotify reports that something appeared; the same scan as before the launch decides what it is. Between the creation
// of a file and its mask lies about a millisecond in which the sandbox can open it. Directories without a watch (the
// user's watches are limited, and other programs use them too) are searched every few seconds.
//
// For workspaces that the sandbox does not write to directly. In `rw` a file that the program made for itself could not
// be told from one of the host's, and would vanish under it.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/workspace_scan.h"
#include "supervise/workspace/live_mask.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Whether one of a sandbox's own layers hides the host's file of that name: by a file, a link or a whiteout. A
/// directory does so only if it is opaque.
bool layerHides(int layer, const std::string& path);

class SecretWatch {
 public:
  struct Options {
    std::string workspace;                                          ///< on the host
    sys::SharedFd directory;                                        ///< the workspace itself, whatever has its path
    host::ScanOptions scan;                                         ///< what to look for
    std::vector<std::string> masked;                                ///< names that a mount hides already
    std::function<bool(const std::string& path)> exposes;           ///< whether the sandbox shows the host's file
    std::function<Result<LiveMask>(const std::string& path)> mask;  ///< ESRCH: nothing runs any more
    std::function<void()> settled;                                  ///< no mask is pending any more; may be empty
  };

  /// `loop` and `cache` must outlive the watch.
  SecretWatch(sys::EventLoop& loop, host::ScanCache& cache, Options options);
  ~SecretWatch();
  SecretWatch(const SecretWatch&) = delete;
  SecretWatch& operator=(const SecretWatch&) = delete;

  /// Starts a moment later, so that a short command does not pay for it.
  void beginSoon();
  /// Starts or resumes the watch.
  void begin();
  /// While nothing runs: releases the user's watches, keeps what is masked. begin() resumes.
  void pause();
  /// Whether every directory is watched.
  [[nodiscard]] bool watching() const { return watching_ && all_watched_; }

  /// Masks those of these files that the sandbox shows.
  void hide(const std::vector<std::string>& paths);
  /// Whether a mask is being made or waits to be made.
  [[nodiscard]] bool pending() const { return mask_ || !pending_.empty(); }
  /// Whether a mask is in place over this path.
  [[nodiscard]] bool masks(const std::string& path) const { return masked_.contains(path); }
  /// After the workspace was mounted anew, without its masks: the next scan or hide() makes them again.
  void forgetMasks();

  /// How many files were hidden so far.
  [[nodiscard]] std::size_t found() const { return found_.size(); }
  /// Adds sentences for a result: what was hidden after the first `known` files, and what could not be.
  void report(std::vector<std::string>& notices, std::vector<std::string>& warnings, std::size_t known = 0);

 private:
  using Clock = sys::EventLoop::Clock;
  using Inode = std::pair<std::uint64_t, std::uint64_t>;  ///< device and number
  struct Directory {
    int watch = -1;
    Inode inode;
  };

  /// inotify reported changes: schedules a scan if something appeared.
  void onEvents();
  /// Scans at this time, or now if it has passed; nothing if an earlier scan is due.
  void scheduleScan(Clock::time_point earliest);
  /// Searches the workspace for secrets and masks what the sandbox shows. Repeats, at most eight times, while there are
  /// new directories to watch: no event reports what appeared in them before.
  void scan();
  /// Updates the watches to the scanned directories. True: there are new ones.
  bool addWatches();
  /// Watches one directory; nothing if that is not possible.
  std::optional<Directory> watch(int root, const std::string& path);
  /// Removes the watches of directories that are gone or have another name now.
  void dropWatches(const std::map<std::string, std::uint64_t>& searched);
  /// Removes a watch that the kernel has dropped from our maps.
  void forget(int watch);
  /// Queues a file for a mask, if the sandbox shows it and it has none yet.
  void consider(const std::string& path);
  /// Starts the next queued mask, one at a time.
  void maskNext();
  /// A mask is in place (0), or failed with an errno. A name that is missing in the sandbox is tried again later.
  void onMasked(int error);
  /// Tries again to mask files that were not found in the sandbox.
  void retryMissing();
  /// Of the host's file; nullopt if there is none.
  [[nodiscard]] std::optional<Inode> inodeOf(const std::string& path) const;

  sys::EventLoop& loop_;
  host::ScanCache& cache_;
  Options options_;
  sys::Fd inotify_;
  sys::EventLoop::TimerId timer_ = 0, mask_timer_ = 0, retry_timer_ = 0;
  std::map<int, std::string> watched_;            ///< directories by watch descriptor
  std::map<std::string, Directory> directories_;  ///< the same, by name
  std::set<std::string> unwatched_;
  bool all_watched_ = true, watching_ = false, unwatched_reported_ = false;
  std::map<std::string, std::optional<Inode>> masked_;  ///< until the host puts another file in its place
  std::set<std::string> failed_;
  std::set<std::string> missing_;   ///< names that were not found in the sandbox
  std::vector<std::string> found_;  ///< for the report, in order
  std::deque<std::string> pending_;
  std::optional<LiveMask> mask_;
  std::string masking_;
  std::optional<Inode> masking_inode_;
  Clock::time_point next_scan_{}, timer_due_{};
};

}  // namespace caisson::supervise
