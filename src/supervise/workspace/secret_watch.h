// Hides secret files that the host creates in the workspace while a sandbox runs.
//
// inotify reports that something appeared or was written. Its name and content are judged at once; the same scan as
// before the launch follows, which also knows what links and configurations lead to. Between the creation of a file and
// its mask lies about a millisecond in which the sandbox can open it. Directories without a watch (the user's watches
// are limited, and other programs use them too) are searched every few seconds.
//
// For workspaces that the sandbox does not write to directly. In `rw` a file that the program made for itself could not
// be told from one of the host's, and would vanish under it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/workspace_scan.h"
#include "supervise/workspace/live_mask.h"
#include "supervise/workspace/mask_queue.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

struct inotify_event;

namespace caisson::supervise {

/// Whether one of a sandbox's own layers hides the host's file of that name: by a file, a link or a whiteout. A
/// directory does so only if it is opaque.
bool layerHides(int layer, const std::string& path);

class SecretWatch {
 public:
  struct Options {
    std::string workspace;                                 ///< on the host
    sys::SharedFd directory;                               ///< the workspace itself, whatever has its path
    host::ScanOptions scan;                                ///< what to look for
    std::vector<std::string> masked;                       ///< names that a mount hides already
    std::function<bool(const std::string& path)> exposes;  ///< whether the sandbox shows the host's file
    /// Whether an overlay shows the host's file, which serves a moved file under its old name from its cache.
    std::function<bool(const std::string& path)> keeps_names;
    std::function<bool(const std::string& path)> writes;  ///< whether the sandbox can make this name on the host
    std::function<Result<LiveMask>(const std::vector<std::string>& paths)> mask;  ///< ESRCH: nothing runs any more
    std::function<void()> progressed;  ///< masks are in place or failed; may be empty
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
  /// Files whose mask is being made or waits to be made.
  [[nodiscard]] std::set<std::string> waiting() const;
  /// Whether the mask of one of them is being made or waits to be made.
  [[nodiscard]] bool waitsFor(const std::set<std::string>& paths) const;
  /// Files of the host that could not be hidden, and that the sandbox shows. None in directories that it writes.
  [[nodiscard]] std::vector<std::string> shown() const;
  /// Whether a mask is in place over the file that has this path now.
  [[nodiscard]] bool masks(const std::string& path) const;
  /// After the workspace was mounted anew, without its masks: the next scan or hide() makes them again.
  void forgetMasks();

  /// How many files were hidden so far.
  [[nodiscard]] std::size_t found() const { return found_.size(); }
  /// Adds sentences for a result: what was hidden after the first `known` files, and what could not be.
  void report(std::vector<std::string>& notices, std::vector<std::string>& warnings, std::size_t known = 0);

 private:
  using Clock = sys::EventLoop::Clock;
  /// Which file it is, since when. A number is given to another file once its file is removed, and a file that gets a
  /// name back has lost its mask: both change this time.
  struct Identity {
    std::uint64_t device = 0, inode = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Identity&) const = default;
    [[nodiscard]] bool sameFile(const Identity& other) const { return device == other.device && inode == other.inode; }
  };
  struct Described {
    Identity identity;
    std::uint32_t type = 0;   ///< of its mode
    std::uint32_t names = 0;  ///< hard links
  };
  struct Directory {
    int watch = -1;
    Identity identity;
  };

  /// What one batch of events leads to.
  struct Reaction {
    bool scan = false;
    std::vector<std::string> secrets;             ///< to be masked
    std::size_t entries = 0;                      ///< of new directories that were looked at
    std::optional<std::vector<Identity>> hidden;  ///< of hidden files with several names
  };

  // Events, and what is judged without a scan: secret_watch_events.cc.
  /// inotify reported changes: masks new secrets, and schedules a scan if something appeared.
  void onEvents();
  void onEvent(const inotify_event& event, Reaction& reaction);
  /// Judges a new entry by its name, and queues it to be judged by its content.
  void onNewEntry(const std::string& path, bool directory, Reaction& reaction);
  /// Watches a new directory, and judges what is in it already.
  void enterNewDirectory(const std::string& path, Reaction& reaction);
  /// A file has a new name, or was written through one, that says nothing: judges it if it is a name of a hidden file.
  void onOtherName(const std::string& path, bool modified, Reaction& reaction);
  /// Queues a file to be judged by its content.
  void judgeLater(const std::string& path, Reaction& reaction);
  /// Judges queued files by their content, in at most a tenth of the time.
  void judgeContents();
  /// As many of them as it can now, and says when to go on.
  void judgeSome();

  // Names that the host moved away, which an overlay still serves: secret_watch_moves.cc.
  void onMovedFrom(const std::string& path, std::uint32_t cookie);
  void onMovedTo(const std::string& path, std::uint32_t cookie);
  /// Hides the old names of what left the workspace, or went to a place in it that is not watched.
  void onMovedOut();
  void hideOldName(const std::string& path);
  /// Hides the old names of a hidden path.
  void hideOldNamesOf(const std::string& path);

  /// Scans at this time, or now if it has passed; nothing if an earlier scan is due.
  void scheduleScan(Clock::time_point earliest);
  /// Searches the workspace for secrets and masks what the sandbox shows. Repeats, at most eight times, while there are
  /// new directories to watch: no event reports what appeared in them before.
  void scan();
  /// Updates the watches to the scanned directories. True: there are new ones.
  bool addWatches();
  /// The same for the directory around the workspace that it is judged from, as far as that is cheap.
  void watchAround(const std::string& enclosing);
  /// Watches one directory; nothing if that is not possible.
  std::optional<Directory> watch(int root, const std::string& path, std::uint32_t events);
  /// Removes the watches of directories that are gone or have another name now.
  void dropWatches(const std::map<std::string, std::uint64_t>& searched);
  void remember(const std::string& path, const Directory& directory);
  /// Removes a watch that the kernel has dropped from our maps.
  void forget(int watch);
  /// Queues a file for a mask, if the sandbox shows it and it has none yet.
  void consider(const std::string& path);
  /// Starts the next queued masks, in one helper process at a time.
  void maskNext();
  /// Masks are in place (0), or failed with an errno, and are tried again later.
  void onMasked(const std::vector<int>& errors);
  void onMasked(const std::string& path, const std::optional<Identity>& identity, int error);
  [[nodiscard]] bool isMasking(const std::string& path) const { return masking_.contains(path); }
  void queue(const std::string& path) { pending_.push(path, options_.writes && options_.writes(path)); }
  /// Tries again to mask a file, some time later.
  void retryLater(const std::string& path);
  void retryUnmasked();
  /// A name is gone: what gets it has no mask.
  void forgetMasksOf(const std::string& path);
  /// The host's file; nullopt if there is none.
  static std::optional<Described> describeOpen(int descriptor);
  [[nodiscard]] std::optional<Described> describe(const std::string& path) const;
  /// 0: there is none.
  [[nodiscard]] std::uint32_t typeOf(const std::string& path) const;
  [[nodiscard]] std::optional<Identity> identityOf(const std::string& path) const;

  sys::EventLoop& loop_;
  host::ScanCache& cache_;
  Options options_;
  sys::Fd inotify_;
  sys::EventLoop::TimerId timer_ = 0, mask_timer_ = 0, retry_timer_ = 0, judge_timer_ = 0, moves_timer_ = 0;
  std::map<int, std::string> watched_;            ///< directories by watch descriptor
  std::map<std::string, Directory> directories_;  ///< the same, by name
  std::map<std::string, Directory> around_;       ///< relative to the directory that the workspace is judged from
  std::set<int> around_watches_;
  std::set<std::string> unwatched_;
  bool all_watched_ = true, watching_ = false, unwatched_reported_ = false;
  std::map<std::string, std::optional<Identity>> masked_;  ///< until the host puts another file in its place
  std::vector<std::string> hidden_;                        ///< as the last scan found
  std::map<std::uint32_t, std::string> moving_;            ///< old names by cookie, until the new one is known
  std::map<std::string, std::set<std::string>> moved_;     ///< old names by new path
  std::set<std::string> old_names_;                        ///< that are masked or to be masked
  std::vector<std::string> hidden_old_names_;              ///< for the report
  std::set<std::string> failed_;
  std::set<std::string> unmasked_;  ///< to be tried again: not found in the sandbox, or failed
  std::vector<std::string> found_;  ///< for the report, in order
  std::set<std::string> named_;     ///< in found_ or hidden_old_names_
  std::set<std::string> unjudged_;  ///< changed files whose content was not judged yet
  MaskQueue pending_;
  std::optional<LiveMask> mask_;
  std::vector<std::string> batch_;                          ///< that is being masked
  std::map<std::string, std::optional<Identity>> masking_;  ///< the same
  Clock::time_point next_scan_{}, timer_due_{}, next_judging_{};
  Clock::duration scan_took_{};
  bool scan_waits_ = false;  ///< for the masks that are being made
};

}  // namespace caisson::supervise
