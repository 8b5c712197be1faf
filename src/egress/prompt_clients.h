// The clients that can prompt a user, in a session whose commands were started by several clients.
//
// Each client represents one command on one terminal. All commands of a session share one network, so a pending
// connection gets a ticket: every client receives both its endpoints and replies whether a process of its command
// holds it. The owner of the connection prompts its user, and only that answer counts. A connection that no client
// claims (of a background command, or a command without a terminal) is denied once all have replied, or after two
// seconds. If a client disconnects, the connections that it claimed are denied.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>

#include "egress/host_name.h"
#include "egress/loop.h"
#include "egress/prompt_limiter.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "egress/sockets.h"
#include "sys/fd.h"

namespace caisson::egress {

class Server;

/// Sent over the session's control socket by a client that wants to receive prompts. The reply is `ready`; afterwards
/// it receives claims and questions and sends changes.
inline constexpr std::string_view kWantsPrompts = "questions";

class PromptClients final : public Watcher {
 public:
  explicit PromptClients(Server& server) : server_(server) {}

  /// Adds a client and sends it `ready`. Closes the connection if there are too many clients.
  void add(sys::Fd socket);
  [[nodiscard]] bool any() const { return !clients_.empty(); }

  /// Asks every client that may still prompt for `target` whether it holds this connection. Returns the connection's
  /// ticket, or 0 if the question could be sent to none. Server::answer() gets the answer with the ticket.
  std::uint64_t ask(const HostPort& target, const Endpoint& from, const Endpoint& to);
  /// Call when the connection is closed or no longer needs an answer.
  void forget(std::uint64_t ticket) { waiting_.erase(ticket); }
  /// A rule for exactly this pattern was added or removed: closes the clients' pending questions about it. If `denied`,
  /// a client that had one is not asked about it again. Answers no connection.
  void onRuleChanged(const std::string& pattern, bool denied);
  /// Denies connections that no client has claimed in time.
  void tick(Clock::time_point now);
  void onEvents(int descriptor, std::uint32_t events) override;

 private:
  /// A client that can prompt its user.
  struct PromptClient {
    std::uint64_t number = 0;
    sys::Fd socket;
    PromptLimiter questions;
  };
  /// A connection that waits for a claim and an answer.
  struct Waiting {
    HostPort target;
    std::set<std::uint64_t> pending_replies;  ///< clients that have not replied to the claim yet
    std::uint64_t owner = 0;                  ///< the client that claimed it; 0: none yet
    Clock::time_point since;                  ///< without a claim it is denied after two seconds
  };

  /// A packet from a client: the reply to a claim, or the user's answer. False for a malformed packet or a message that
  /// clients never send; the caller then drops the client.
  bool onChange(PromptClient& client, std::string_view packet);
  /// A client replied whether its command holds the connection. If so, sends it the question, or waits for a pending
  /// one, or denies the connection: the user denied it before, was prompted too often, or cannot be reached. False for
  /// a malformed ticket.
  bool onClaim(PromptClient& client, const Change& change);
  /// The user of this client answered: answers all connections to `target` that it owns.
  void onAnswer(PromptClient& client, const HostPort& target, bool permitted);
  /// The connection is not held by this client's command, or the client is gone. Denies the connection if that client
  /// owned it, or was the last one to reply and none has claimed it.
  void onNotOwner(std::uint64_t client, std::uint64_t ticket);
  /// Removes a client. Denies the connections that it owned, and those that waited only for its reply.
  void drop(std::list<PromptClient>::iterator client);
  /// Passes the answer on to the server, unless the ticket was forgotten.
  void answer(std::uint64_t ticket, bool permitted);
  /// Sends a report without blocking. False if that fails, for example because the client does not read; the report is
  /// lost then.
  static bool send(const PromptClient& client, const Report& report);

  Server& server_;
  std::list<PromptClient> clients_;
  std::map<std::uint64_t, Waiting> waiting_;  ///< by ticket
  std::uint64_t last_client_ = 0, last_ticket_ = 0;
};

}  // namespace caisson::egress
