// A peer as far as the server remembers it: a stdio connection, an HTTP session of the older versions, or, since
// 2026-07-28 keeps no state, one HTTP request.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "mcp/call.h"

namespace caisson::mcp {

class Client {
 public:
  /// What `initialize` settled; all of it empty before.
  struct Agreement {
    std::string version;
    Json capabilities = Json::object();
    std::string log_level;
  };

  /// How many requests of one client are served or wait at the same time; more are refused.
  static constexpr std::size_t kMaxCalls = 4096;

  void agree(Agreement agreement);
  [[nodiscard]] std::optional<Agreement> agreement() const;
  void setLogLevel(std::string level);

  /// Where messages go that belong to no request: the stdio channel, the GET stream of an HTTP session, or nowhere.
  void setStream(std::shared_ptr<Channel> stream);
  [[nodiscard]] std::shared_ptr<Channel> stream() const;

  enum class Admission : std::uint8_t { admitted, duplicate, too_many };
  /// Remembers a request until it is answered, so that it can be cancelled.
  Admission admit(const std::shared_ptr<Call>& call);
  void forget(const Call& call);
  /// Cancels the request with this id, if it is being served.
  void cancel(const Json& id);
  /// Waits until no call but subscriptions is being served, for a limited time, or until `until` becomes readable.
  void settle(std::chrono::milliseconds timeout, int until) const;
  /// The peer is gone: nobody waits for anything.
  void cancelAll();

  /// Sends a request to the client on the call's channel and waits for the answer: a response message, or nothing when
  /// the call was cancelled or the time was over.
  std::optional<Message> ask(Call& call, const std::string& method, Json params, std::chrono::seconds timeout);
  /// Hands over a response that came in; one that nobody waits for is dropped.
  void deliver(Message response);

  /// Resources whose changes the client wants to hear of (before 2026-07-28). False when there are too many.
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
  std::map<std::int64_t, std::optional<Message>> asked_;
  std::int64_t next_id_ = 1;
  std::set<std::string> subscriptions_;
};

}  // namespace caisson::mcp
