// What a server offers, independent of the transport: sandbox tools, or the fixtures of the conformance suite.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "mcp/server/call.h"

namespace caisson::mcp {

/// A question to the user or program behind the client.
struct InputRequest {
  std::string method;  ///< elicitation/create, sampling/createMessage or roots/list
  Json params;
};

/// Returned by a handler that needs input. It is called again with the answers in Call::inputs and `state` in
/// Call::state: by the client's next request since 2026-07-28, by the server in older versions.
struct NeedsInput {
  std::map<std::string, InputRequest> requests;
  std::string state;
};

/// A call that continues after its answer, as clients see it at one moment.
struct Task {
  enum class Status : std::uint8_t { working, input_required, completed, failed, cancelled };
  using Clock = std::chrono::system_clock;

  std::string id;  ///< unguessable: every client that has it may use the task
  Status status = Status::working;
  std::string message;  ///< for display; may be empty
  Clock::time_point created, updated;
  std::int64_t ttl_ms = 0;  ///< since `created`; readTask() knows the task that long
  std::int64_t poll_ms = 1000;
  std::map<std::string, InputRequest> requests;  ///< with input_required
  Json result;                                   ///< with completed
  RpcError error;                                ///< with failed
  Json details;                                  ///< for _meta; null: none

  [[nodiscard]] bool ended() const { return status != Status::working && status != Status::input_required; }
};

/// The result, a request for input, a protocol error, or a task that continues (only if Call::takesTask()). A tool that
/// failed has a result (isError), not an error.
using Outcome = std::variant<Json, NeedsInput, RpcError, Task>;

/// Notifies clients of changes. Thread-safe.
class Announcer {
 public:
  enum class Change : std::uint8_t { tools, prompts, resources };
  virtual ~Announcer() = default;
  /// A list changed: entries were added or removed.
  virtual void changed(Change what) = 0;
  /// The content of a resource changed.
  virtual void resourceUpdated(const std::string& uri) = 0;
};

/// How long, and by whom, a list or a resource may be cached.
struct CacheHint {
  std::int64_t ttl_ms = 0;
  bool shared = false;
};

/// The error for a task id that is unknown, or whose task expired.
RpcError unknownTask();

/// All methods may be called from several threads at once.
class Features {
 public:
  virtual ~Features() = default;
  /// Called once: changes are to be reported to `announcer`.
  virtual void connect(Announcer& announcer) { static_cast<void>(announcer); }

  [[nodiscard]] virtual Json serverInfo() const = 0;
  [[nodiscard]] virtual Json capabilities(ProtocolRevision revision) const = 0;
  [[nodiscard]] virtual std::string instructions() const { return {}; }

  // Complete arrays: none is long enough for pages.
  [[nodiscard]] virtual Json tools() = 0;
  [[nodiscard]] virtual Json prompts() = 0;
  [[nodiscard]] virtual Json resources() = 0;
  [[nodiscard]] virtual Json resourceTemplates() = 0;
  /// How long clients may cache the lists, except that of resources.
  [[nodiscard]] virtual CacheHint listsKeep() const { return {.ttl_ms = 3'600'000, .shared = true}; }

  // The name or uri is in call.params; the server checked only that it is a string. It checks nothing for complete().
  virtual Outcome callTool(Call& call) = 0;
  virtual Outcome getPrompt(Call& call) = 0;
  virtual Outcome readResource(Call& call) = 0;
  virtual Outcome complete(Call& call) = 0;

  // Tasks, for features whose capabilities declare the extension. Any connection may use any task whose id it has; an
  // unknown id is an error (unknownTask).
  virtual std::expected<Task, RpcError> readTask(const Call& call, const std::string& id);
  /// Delivers answers to a task's input requests, by key. Unknown keys are ignored.
  virtual std::optional<RpcError> updateTask(const Call& call, const std::string& id, const Json& answers);
  /// Ends a task; not an error if it ended already.
  virtual std::optional<RpcError> cancelTask(const Call& call, const std::string& id);
};

}  // namespace caisson::mcp
