// One request that is being served, and what its handler may do meanwhile: report progress, log, notice that nobody
// waits any more. Everything about the client that a handler may rely on is in here, so that handlers are the same for
// both eras of the protocol.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mcp/channel.h"
#include "mcp/message.h"
#include "mcp/version.h"

namespace caisson::mcp {

/// The severities of log messages, least first.
inline constexpr std::array<std::string_view, 8> kLogLevels{"debug", "info",     "notice", "warning",
                                                            "error", "critical", "alert",  "emergency"};
/// The place of a level in the list, or -1.
int logLevelRank(std::string_view level);

class Client;

class Call {
 public:
  Call(Message message, std::shared_ptr<Channel> channel, std::shared_ptr<Client> client);

  // What the client said. Set before a handler sees the call, and constant from then on.
  Json id;
  std::string method;
  Json params;
  Era era = Era::modern;
  std::string version;
  Json capabilities;      ///< of the client
  std::string log_level;  ///< least severe level the client wants; empty: no log messages
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Client> client;

  /// What the client answered to an earlier `NeedsInput` of this call, by key; null in the first round.
  Json inputs;
  /// What the handler gave as `state` in the round before. It came back through the client, and was verified.
  std::optional<std::string> state;

  /// Whether the client declared a capability ("elicitation", "sampling", "roots").
  [[nodiscard]] bool can(std::string_view capability) const;
  /// The answer to one input request, or null.
  [[nodiscard]] const Json* input(std::string_view key) const { return findObject(inputs, key); }

  /// Whether the client asked for progress.
  [[nodiscard]] bool wantsProgress() const { return !progress_token_.is_null(); }
  /// Sends progress if the client asked for it. An amount that is not larger than the one before is raised a little:
  /// the protocol wants it to grow.
  void progress(double amount, std::optional<double> total, std::string_view message);
  void log(std::string_view level, std::string_view logger, Json data);
  void notify(std::string_view name, Json notification_params);

  [[nodiscard]] bool cancelled() const;
  /// Runs `hook` when the call is cancelled; at once if it already is. `hook` must not block. It is dropped, and will
  /// not run any more, when the returned guard ends.
  [[nodiscard]] std::shared_ptr<void> onCancel(std::function<void()> hook);
  /// Waits; false when the call was cancelled before the time was over.
  bool pause(std::chrono::milliseconds time);

  void cancel();
  /// Sends the answer unless the call was cancelled or answered before.
  void answer(const Json& message);

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
