// Disk space that is left for writes from outside, shared by all handles of a session in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace caisson::session {

/// Thread-safe. Without it, each of several writers at once would get all the space that is left.
class WriteRoom {
 public:
  /// Bytes that the session may still write, from the sizes of its layers. Called with the lock held.
  using Measure = std::function<std::uint64_t()>;

  /// Measures, and returns how many bytes are left for all writers together.
  std::uint64_t measure(const Measure& measure);
  /// Reserves `bytes`; false if they do not fit. Measures before if more than `unmeasured` bytes were reserved since
  /// the last time, or if they do not seem to fit. Call written() after the write.
  bool reserve(std::uint64_t bytes, std::uint64_t unmeasured, const Measure& measure);
  /// reserve() without measuring; the caller has called measure().
  bool take(std::uint64_t bytes);
  /// Reserved bytes are in a file now, or will never be: from now on they are measured.
  void written(std::uint64_t bytes);
  /// Calls `remove` to remove a file with reserved bytes; if that returns true, others may have them. No measurement
  /// happens in between, which would count them twice.
  void giveBack(std::uint64_t bytes, const std::function<bool()>& remove);
  /// Makes the next reserve() measure. Writers that are under way go on with what they know.
  void forget();
  /// Bytes left, as far as known.
  [[nodiscard]] std::uint64_t left();

 private:
  void measureLocked(const Measure& measure);

  std::mutex mutex_;
  std::optional<std::uint64_t> left_;
  bool stale_ = false;
  std::uint64_t since_ = 0;    ///< bytes reserved since the last measurement
  std::uint64_t pending_ = 0;  ///< reserved and not yet in a file
};

/// The rooms of all sessions that handles of this process write to. Thread-safe.
class WriteRooms {
 public:
  std::shared_ptr<WriteRoom> of(const std::string& id);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<WriteRoom>> rooms_;  ///< by the session's id
};

}  // namespace caisson::session
