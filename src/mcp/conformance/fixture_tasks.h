// The fixtures of the suite's tasks scenarios. Their tasks do nothing: their state follows from the clock and from the
// answers that arrived.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "mcp/server/features.h"

namespace caisson::mcp {

class FixtureTasks {
 public:
  /// Calls a tool of these fixtures; nothing if the name is of another tool.
  std::optional<Outcome> call(Call& call, const std::string& tool);

  std::expected<Task, RpcError> read(const std::string& id);
  std::optional<RpcError> update(const std::string& id, const Json& answers);
  std::optional<RpcError> cancel(const std::string& id);

 private:
  static constexpr std::size_t kKept = 1000;

  /// A task in the state that it has after `duration`, unless it is cancelled before.
  struct Entry {
    Task task;
    std::chrono::milliseconds duration{0};
    Task::Status end = Task::Status::completed;
  };
  Outcome add(Entry entry);
  Entry* find(const std::string& id);
  /// Lets the time that passed take effect.
  static void advance(Entry& entry);

  std::mutex mutex_;
  std::deque<Entry> entries_;  ///< oldest first
};

}  // namespace caisson::mcp
