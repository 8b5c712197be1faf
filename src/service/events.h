// Lifecycle events of sandboxes, for streams and webhooks. The newest are kept in memory; the audit log is the record.
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
};

Json describeEvent(const LifecycleEvent& event);

class Events {
 public:
  void publish(std::string type, const std::string& sandbox, const std::string& owner, Json data);
  /// Events after `id`, oldest first, at most `most`.
  [[nodiscard]] std::vector<LifecycleEvent> after(std::uint64_t id, std::size_t most) const;
  [[nodiscard]] std::uint64_t last() const;
  using Notify = std::function<void(const LifecycleEvent& event)>;
  /// Calls `notify` after each event, from the publishing thread, until the result is destroyed.
  [[nodiscard]] std::shared_ptr<void> subscribe(Notify notify);

 private:
  static constexpr std::size_t kKept = 4096;
  mutable std::mutex mutex_;
  std::deque<LifecycleEvent> events_;
  std::uint64_t last_ = 0;
  std::uint64_t next_subscriber_ = 0;
  std::map<std::uint64_t, Notify> subscribers_;
};

/// The current time as "2026-11-15T05:11:04.123Z".
std::string timeText();

}  // namespace caisson::service
