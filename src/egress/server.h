// All parts of one sandbox's egress: its listeners, connections and resolver.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "egress/attempt_limiter.h"
#include "egress/budget.h"
#include "egress/loop.h"
#include "egress/names.h"
#include "egress/own_addresses.h"
#include "egress/pipes.h"
#include "egress/prompt_limiter.h"
#include "egress/records.h"
#include "egress/request_log.h"
#include "egress/resolver.h"
#include "egress/rules.h"
#include "egress/settings.h"
#include "egress/sockets.h"

namespace caisson::egress {

class BrokerLink;
class Connection;
class Control;
class DnsServer;
class PacketLog;

/// How the sandbox's connections arrive (isolation/egress_sockets.cc makes the sockets).
struct SandboxSockets {
  bool redirected = false;  ///< `capture` gets every port by redirection; else one listener per allowed port
  /// Listeners for the proxy and for DNS by UDP and TCP; `log`: blocked packets (PacketLog), or invalid.
  sys::Fd proxy, dns, dns_stream, log;
  std::vector<sys::Fd> capture;  ///< listeners for captured connections
  sys::Fd handed;                ///< instead of all others: connections to the proxy arrive here, one per message
};

class Server final : public Watcher {
 public:
  Server(Settings settings, Rules rules, sys::Fd supervisor);
  ~Server();

  /// Opens the event loop and the netlink socket. Call before confine(), which forbids both.
  Result<void> open();
  /// Watches the sandbox's sockets and reports `ready` to the supervisor. run() then does the work.
  Result<void> serve(SandboxSockets sockets);
  /// For a session: pidfd of pid 1, and the listener for changes. Call before serve().
  void useControl(sys::Fd init, sys::Fd listener);
  /// The link to the broker for hosts with a credential. Call before serve().
  void useBroker(sys::Fd link);
  /// Runs until the supervisor closes its end or, for a session, pid 1 exits. Then closes all connections and sends the
  /// remaining reports and the totals.
  void run();

  void onEvents(int descriptor, std::uint32_t events) override;

  // Shared by its parts.
  Loop loop;
  const Settings settings;
  Rules rules;
  SyntheticNames names;
  OwnAddresses own_addresses;
  PipePool pipes;
  std::unique_ptr<Resolver> resolver;
  std::unique_ptr<BrokerLink> broker;  ///< null without credentials
  Totals totals;
  AttemptLimiter attempts;

  /// The addresses of an allowed name, each of them checked; or the first denial, if one is not allowed. A lookup that
  /// is sent out counts against the sandbox's budget.
  struct Addresses {
    Decision decision;
    bool failed = false;  ///< no server gave a usable answer
    std::vector<std::string> aliases;
    std::vector<Address> list;
  };
  /// Calls back with the addresses of `host`, at once or later. Checks its aliases and addresses, for `port` if that is
  /// known, but not the name: the caller has done that. `owner` identifies the call for Resolver::cancel().
  void lookUp(const Host& host, std::optional<std::uint16_t> port, const void* owner,
              std::function<void(const Addresses&)> callback);
  /// Rules::judgeResolved() on this machine.
  [[nodiscard]] Decision judgeResolved(const Host& host, std::optional<std::uint16_t> port,
                                       std::span<const std::string> aliases, std::span<const Address> addresses) const {
    return rules.judgeResolved(host, port, aliases, addresses,
                               [this](const Address& address) { return own_addresses.contains(address); });
  }
  /// Why an allowed result has no addresses.
  static std::string_view describeFailure(const Addresses& addresses) {
    return addresses.failed ? "no DNS server answered" : "the name does not exist";
  }

  /// Calls back with the endpoint of network.upstream_proxy; nullopt if its name does not resolve. Its address is not
  /// checked: the owner configured it, so it may be in a blocked range, even on this machine.
  void findProxy(const void* owner, std::function<void(std::optional<Endpoint>)> callback);

  /// Reports an allowed host that could not be reached; `port` may be 0.
  void reportUnreachable(const std::string& host, std::uint16_t port, std::string_view why);
  /// Counts a request and sends its report, unless it is a repetition or over the limit of RequestLog: then false.
  /// `blocked_range`: Decision::range of the denial.
  bool report(Request request, std::string_view blocked_range = {});
  /// Reports a new connection. Returns its number for Connection::recorded(), or 0 if it was only counted and so need
  /// not wait.
  std::uint64_t reportOpened(Request request) { return report(std::move(request)) ? opened_ : 0; }
  /// Counts denials without details.
  void reportUnknown(std::uint64_t count);
  /// Reports what was only counted so far, so that records and overflows add up to all requests.
  void reportRemaining();
  /// Whether a user can be prompted for unlisted hosts.
  [[nodiscard]] bool canAsk() const;
  /// Whether a connection to `target`, denied by `decision`, waits for the user's answer.
  struct Wait {
    bool waits = false;
    std::uint64_t ticket =
        0;  ///< if several users can be asked (PromptClients); else the target identifies the question
  };
  /// Asks the user about `target`, or joins a question that is pending. Does not wait if no user can be prompted (also
  /// after too many prompts), a rule or blocked range denies the target, or the user denied it before. `client`: the
  /// connection's socket; `accepted_on`: its local address.
  Wait ask(const HostPort& target, const Decision& decision, int client, const Endpoint& accepted_on);
  /// Handles the answer for the connection with this ticket.
  void answer(std::uint64_t ticket, bool permitted);
  /// The connection with this ticket no longer waits.
  void forgetTicket(std::uint64_t ticket);
  /// Applies an encoded Change: changes the rules and checks all connections again, or passes the user's answer to
  /// those that wait for it. An error if it is malformed, or a reply to a claim, which only PromptClients handles.
  Result<void> applyChange(std::string_view packet);
  /// Makes run() return after the current turn.
  void end() { ended_ = true; }
  /// Removes a connection, which is closed, after the current turn of the loop.
  void retire(Connection* connection);
  /// Adds to the totals, which network.max_bytes limits.
  void countBytes(std::uint64_t sent, std::uint64_t received);
  [[nodiscard]] bool overByteLimit() const {
    return settings.max_bytes > 0 && totals.sent + totals.received >= settings.max_bytes;
  }
  /// How many bytes may still be read, in both directions together.
  [[nodiscard]] std::uint64_t allowance() const {
    if (settings.max_bytes == 0) return ~std::uint64_t{0};
    return settings.max_bytes - std::min(settings.max_bytes, totals.sent + totals.received);
  }
  /// The size of the socket buffers of a new connection (boundBuffers()); 0: they may grow. Only a few connections may
  /// have large buffers at the same time, which a fast transfer over a long way needs: a payload that stops reading
  /// would fill them all, outside of the sandbox's memory limit.
  [[nodiscard]] int bufferBytes() const;
  /// Call after accept4() failed on `listener` with errno `error`. If descriptors or memory ran out, does not watch it
  /// until the next tick: the connection stays in its queue, and the listener ready, which would be a busy loop.
  void onAcceptFailed(int listener, Watcher* watcher, int error);
  /// Runs `connection` again in the next turn, since it used up its share of this one.
  void again(Connection* connection);

 private:
  /// Accepts waiting connections; resets and reports those over a limit. `on_proxy_port`: from the proxy's listener,
  /// where only connections to loopback are for the proxy; others were captured.
  void accept(int listener, bool on_proxy_port);
  /// Receives the connections that the supervisor made (Settings::handed_connections).
  void acceptHanded();
  /// Serves an accepted connection, or resets it if a limit is reached.
  void take(sys::Fd client, bool on_proxy_port);
  /// Gives the user's answer about one host and port to the connections that wait for it.
  Result<void> answerQuestion(const Change& change);
  /// Handles one packet of the supervisor: a request for totals, a confirmation of records, or a Change. Ends run() if
  /// the supervisor has closed its end.
  void onSupervisor();
  /// Queues a report and sends what fits. Drops none while the supervisor lives: blocks if too many are queued.
  void sendReport(const Report& report);
  /// Sends RequestLog::takeOverflows(), without the repetitions.
  void sendOverflows();
  /// Sends queued reports; with MSG_DONTWAIT in `flags`, only as many as fit.
  void sendUnsent(int flags);
  /// Bytes of the name to charge to the lookup budget. 0 for a name that no rule allows where users can be prompted:
  /// the user has approved it.
  [[nodiscard]] std::size_t freeBytes(const Host& host) const;
  /// Runs every 250 ms while there are connections or lookups: timeouts of all parts, and overflow reports.
  void tick(Clock::time_point now);
  /// Whether it is a listener for captured connections.
  [[nodiscard]] bool isCapture(int descriptor) const;

  sys::Fd supervisor_;
  SandboxSockets sockets_;
  LookupBudget budget_;
  PromptLimiter questions_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<PacketLog> packets_;
  std::unique_ptr<Control> control_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> unfinished_;                     ///< see again()
  std::vector<std::pair<int, Watcher*>> paused_listeners_;  ///< see onAcceptFailed()
  bool retired_ = false;                                    ///< a connection closed: run() must remove it
  bool supervised_ = false;                                 ///< the supervisor's socket is watched
  bool ended_ = false;                                      ///< see end()
  RequestLog requests_;
  std::uint64_t opened_ = 0;        // reports with the operation kOpened, counted like the supervisor does
  std::deque<std::string> unsent_;  // reports that did not fit into the supervisor's socket
  Clock::time_point next_tick_{}, next_overflow_{};
};

}  // namespace caisson::egress
