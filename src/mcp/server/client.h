// The server's state for a peer: a stdio connection, an HTTP session of the older versions, or, since 2026-07-28 is
// stateless, one HTTP request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "mcp/server/call.h"

namespace caisson::mcp {

class Client {
 public:
  /// What `initialize` negotiated; empty before.
  struct Agreement {
    std::string version;
    Json capabilities = Json::object();
    std::string log_level;
  };

  /// Maximum number of requests of one client in progress or waiting; more are rejected.
  static constexpr std::size_t kMaxCalls = 4096;

  /// Stores what `initialize` negotiated.
  void agree(Agreement agreement);
  /// Nothing before `initialize`.
  [[nodiscard]] std::optional<Agreement> agreement() const;
  /// Ignored before `initialize`.
  void setLogLevel(std::string level);

  /// Sets the channel of messages that belong to no request: stdio, the GET stream of an HTTP session, or none.
  void setStream(std::shared_ptr<Channel> stream);
  [[nodiscard]] std::shared_ptr<Channel> stream() const;

  enum class Admission : std::uint8_t { admitted, duplicate, too_many };
  /// Registers a request until it is answered, so that it can be cancelled.
  Admission admit(const std::shared_ptr<Call>& call);
  /// Removes a request that is about to be answered; its id may then be reused.
  void forget(const Call& call);
  /// Cancels the request with this id, if it is in progress.
  void cancel(const Json& id);
  /// Waits until only subscriptions are in progress, until the timeout, or until `until` becomes readable.
  void settle(std::chrono::milliseconds timeout, int until) const;
  /// The peer disconnected: cancels all its calls.
  void cancelAll();

  /// Sends a request to the client on the call's channel and waits for the response. Returns nothing if the call was
  /// cancelled or the time expired.
  std::optional<Message> ask(Call& call, const std::string& method, Json params, std::chrono::seconds timeout);
  /// Delivers a received response; drops it if no call waits for it.
  void deliver(Message response);

  /// Subscribes to changes of a resource (before 2026-07-28). Returns false if there are too many.
  bool subscribe(const std::string& uri);
  void unsubscribe(const std::string& uri);
  [[nodiscard]] bool subscribed(const std::string& uri) const;

 private:
  static constexpr std::size_t kMaxSubscriptions = 1024;

  mutable std::mutex mutex_;
  std::condition_variable delivered_;
  std::optional<Agreement> agreement_;
  std::shared_ptr<Channel> stream_;
  std::map<Json, std::shared_ptr<Call>> calls_;
  std::map<std::int64_t, std::optional<Message>> asked_;  ///< our requests by id, with the response once it arrived
  std::int64_t next_id_ = 1;
  std::set<std::string> subscriptions_;
};

}  // namespace caisson::mcp
