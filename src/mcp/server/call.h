// One request in progress, and what its handler may do: report progress, log, check for cancellation. Holds everything
// a handler needs to know about the client, so that handlers are the same for both revisions of the protocol.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mcp/protocol/message.h"
#include "mcp/protocol/version.h"
#include "mcp/server/channel.h"

namespace caisson::mcp {

/// Log levels, least severe first.
inline constexpr std::array<std::string_view, 8> kLogLevels{"debug", "info",     "notice", "warning",
                                                            "error", "critical", "alert",  "emergency"};
/// Returns the index of a level in the list, or -1.
int logLevelRank(std::string_view level);

class Client;

class Call {
 public:
  Call(Message message, std::shared_ptr<Channel> channel, std::shared_ptr<Client> client);

  // Sent by the client. Set before a handler gets the call, and constant from then on.
  Json id;
  std::string method;
  Json params;
  ProtocolRevision revision = ProtocolRevision::modern;
  std::string version;
  Json capabilities;      ///< of the client
  std::string log_level;  ///< least severe level the client wants; empty: no log messages
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Client> client;
  std::shared_ptr<void> memory;  ///< the share of the server's limit for calls, until the call is destroyed

  /// The client's answers to an earlier `NeedsInput` of this call, by key; null in the first round.
  Json inputs;
  /// The `state` that the handler returned in the previous round. It was sent through the client, and is verified.
  std::optional<std::string> state;

  /// Whether the client declared a capability ("elicitation", "sampling", "roots").
  [[nodiscard]] bool can(std::string_view capability) const;
  /// Whether the answer may be a task: the client declared the extension, or (2025-11-25) requested one.
  [[nodiscard]] bool takesTask() const;
  /// The answer to one input request, or null.
  [[nodiscard]] const Json* input(std::string_view key) const { return findObject(inputs, key); }

  /// Whether the client requested progress.
  [[nodiscard]] bool wantsProgress() const { return !progress_token_.is_null(); }
  /// Sends progress if the client requested it. An amount that did not grow is raised slightly: the protocol requires
  /// growth.
  void progress(double amount, std::optional<double> total, std::string_view message);
  /// Sends a log message, if the client wants this level.
  void log(std::string_view level, std::string_view logger, Json data);
  /// Sends a notification, unless the call was cancelled or answered.
  void notify(std::string_view name, Json notification_params);

  [[nodiscard]] bool cancelled() const;
  /// Runs `hook` when the call is cancelled; at once if it already is. `hook` must neither block nor use this call,
  /// whose mutex is held. Destroying the returned guard removes the hook.
  [[nodiscard]] std::shared_ptr<void> onCancel(std::function<void()> hook);
  /// Sleeps; returns false if the call was cancelled meanwhile.
  bool pause(std::chrono::milliseconds time);

  /// Cancels the call: runs the hooks; no answer is sent any more.
  void cancel();
  /// Sends the answer unless the call was already cancelled or answered. `share`: the memory for Channel::sendAnswer().
  void answer(const Json& message, std::shared_ptr<void> share = nullptr);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<std::function<void()>>> hooks_;
  bool cancelled_ = false;
  bool answered_ = false;
  Json progress_token_;
  double progress_sent_ = -1;
};

}  // namespace caisson::mcp
