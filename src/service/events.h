// Lifecycle events of sandboxes, for streams and webhooks. The newest of each owner are kept in memory, so that one
// cannot displace the events of another; the audit log is the record.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json_document.h"

namespace caisson::service {

struct LifecycleEvent {
  std::uint64_t id = 0;
  std::string
      type;  ///< "sandbox.created", "sandbox.ended", "command.started", "command.ended", "approval.requested" ...
  std::string time;
  std::string sandbox;
  std::string owner;  ///< whose sandbox it is: others do not see the event
  Json data;
  std::size_t bytes = 0;  ///< about the size of its text
};

Json describeEvent(const LifecycleEvent& event);

class Events {
 public:
  static constexpr std::size_t kMaxData = std::size_t{8} << 10U;
  /// Data above kMaxData is replaced by {"omitted_bytes": SIZE}: callers choose parts of it, and events stay in memory.
  void publish(std::string type, const std::string& sandbox, const std::string& owner, Json data);
  /// How far a reader is.
  struct Position {
    std::uint64_t event = 0;                    ///< the id of the last one
    std::map<std::string, std::uint64_t> lost;  ///< by owner: the last one that was reported as lost
  };
  /// The next events of the owners that the reader sees, oldest first, at most kMaxAtOnce and about `max_bytes`, but at
  /// least one. If some are not kept any more, the first is "events.lost" with their number; of more than kKept of one
  /// owner, these are counted.
  [[nodiscard]] std::vector<LifecycleEvent> next(Position& position, std::size_t max_bytes,
                                                 const std::function<bool(const std::string& owner)>& sees) const;
  [[nodiscard]] std::uint64_t last() const;
  using Notify = std::function<void(const LifecycleEvent& event)>;
  /// Calls `notify` after each event, from the publishing thread, until the result is destroyed.
  [[nodiscard]] std::shared_ptr<void> subscribe(Notify notify);

 private:
  static constexpr std::size_t kMaxAtOnce = 64;
  static constexpr std::size_t kKept = 1024;        ///< of one owner
  static constexpr std::size_t kKeptInAll = 16384;  ///< more: the owner with most loses his oldest
  struct Ring {
    std::deque<LifecycleEvent> events;
    std::deque<std::uint64_t> lost;  ///< ids
  };
  /// Removes the oldest event of an owner.
  void drop(Ring& ring);

  mutable std::mutex mutex_;
  std::map<std::string, Ring> rings_;  ///< by owner
  std::size_t kept_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t next_subscriber_ = 0;
  std::map<std::uint64_t, Notify> subscribers_;
};

/// The current time as "2026-11-15T05:11:04.123Z".
std::string timeText();

}  // namespace caisson::service
