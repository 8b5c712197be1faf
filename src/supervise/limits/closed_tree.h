// Sizes of trees that the supervisor cannot read itself, measured by helper processes in the background.
//
// A payload may close its directories to their owner, who is also the supervisor's user. A helper enters a user
// namespace in which the same ids are mapped, and may read them there. It ends at a deadline, and when its report is
// not awaited any more.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "supervise/limits/tree_size.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct ClosedReport {
  TreeSize size;
  std::uint64_t cpu_ns = 0;
};

/// Lets this process, which has to be single-threaded, read directories that a payload has closed. Returns 0 or a
/// negative errno. Neither allocates nor locks. `sandbox`: the user namespace of a sandbox of this user, for files of
/// its subordinate ids; -1: a new one, with this user only.
long enterOwnersNamespace(int sandbox = -1);

/// Starts a helper that measures `directory` and writes a ClosedReport to `report`. Returns its pid, or a negative
/// errno. It sends no exit signal. Its bounds need a deadline. `sandbox`: as above.
long startMeasureHelper(int directory, const TreeBounds& bounds, int report, int sandbox = -1);

/// One measurement that is under way.
class ClosedMeasure {
 public:
  /// Starts a helper as our child; nullopt if that fails.
  static std::optional<ClosedMeasure> start(int directory, const TreeBounds& bounds, int sandbox);
  /// For a helper that is a child of another process.
  explicit ClosedMeasure(sys::Fd report) : report_(std::move(report)) {}

  ClosedMeasure(ClosedMeasure&& other) noexcept;
  ClosedMeasure& operator=(ClosedMeasure&&) = delete;
  ~ClosedMeasure();  ///< kills the helper, if it is our child and not done; waits at most a second for its end

  /// Waits for the report; nullopt after `timeout`. Hidden and empty if the helper failed. Do not call it again after a
  /// report.
  std::optional<ClosedReport> wait(std::chrono::milliseconds timeout);

 private:
  ClosedMeasure(pid_t helper, sys::Fd report) : helper_(helper), report_(std::move(report)) {}
  /// Waits for the helper if it `exited`; otherwise only reaps it if it is a zombie already.
  void reap(bool exited);

  pid_t helper_ = -1;
  sys::Fd report_;
};

/// The last known sizes of some trees, by directory. Outlives the watches of single commands.
class ClosedSizes {
 public:
  using Start = std::function<std::optional<ClosedMeasure>(int directory, const TreeBounds& bounds)>;
  explicit ClosedSizes(Start start) : start_(std::move(start)) {}
  ClosedSizes()
      : start_([this](int directory, const TreeBounds& bounds) {
          return ClosedMeasure::start(directory, bounds, sandbox_.get());
        }) {}
  ClosedSizes(const ClosedSizes&) = delete;
  ClosedSizes& operator=(const ClosedSizes&) = delete;

  /// The user namespace of the sandbox that writes to the trees, if it has subordinate ids.
  void useNamespace(sys::Fd sandbox) { sandbox_ = std::move(sandbox); }

  /// A size, and what the file system had free when its measurement began.
  struct Known {
    TreeSize size;
    std::uint64_t free_bytes = 0, free_inodes = 0;
  };
  /// The newest complete size; before the first one an incomplete one (`hidden`), or nothing.
  std::optional<Known> last(int directory);
  /// A complete size that the caller measured itself.
  void set(int directory, const Known& known);
  /// Starts a helper for last(), which ends after five seconds. Does nothing if one measures this directory or did a
  /// short time ago, or if two others run.
  void request(int directory, TreeBounds bounds, std::uint64_t free_bytes, std::uint64_t free_inodes);
  /// Always starts a helper and waits for it; nullopt if it did not measure everything in time. Does not change last().
  std::optional<TreeSize> measure(int directory, TreeBounds bounds, std::chrono::milliseconds timeout);

 private:
  using Key = std::pair<dev_t, ino_t>;
  struct Pending {
    ClosedMeasure measure;
    std::uint64_t free_bytes, free_inodes;
  };
  struct Tree {
    std::optional<Known> known;
    std::optional<Pending> pending;
    std::chrono::steady_clock::time_point not_before;  ///< of the next helper: they use at most a tenth of a processor
  };
  /// nullopt if fstat fails.
  static std::optional<Key> keyOf(int directory);
  /// Stores the reports that have arrived; does not wait.
  void collect();

  sys::Fd sandbox_;
  Start start_;
  std::map<Key, Tree> trees_;
};

}  // namespace caisson::supervise
