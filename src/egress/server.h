// All parts of one sandbox's egress: its listeners, connections and resolver.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egress/budget.h"
#include "egress/loop.h"
#include "egress/names.h"
#include "egress/own_addresses.h"
#include "egress/pipes.h"
#include "egress/questions.h"
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

/// How the sandbox's connections arrive (isolation/network.cc makes the sockets).
struct SandboxSockets {
  bool redirected = false;  ///< `capture` gets every port by redirection; else one listener per allowed port
  sys::Fd proxy, dns, dns_stream, log;
  std::vector<sys::Fd> capture;
};

class Server final : public Watcher {
 public:
  Server(Settings settings, Rules rules, sys::Fd supervisor);
  ~Server();

  Result<void> open();
  Result<void> serve(SandboxSockets sockets);
  /// For a session: pidfd of pid 1, and the listener for changes. Call before serve().
  void useControl(sys::Fd init, sys::Fd listener);
  /// The link to the broker for hosts with a credential. Call before serve().
  void useBroker(sys::Fd link);
  /// Runs until the supervisor or, for a session, the kernel reports that the sandbox is gone.
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

  /// The addresses of an allowed name, each of them checked; or the first denial, if one is not allowed. A lookup that
  /// is sent out counts against the sandbox's budget.
  struct Addresses {
    Decision decision;
    bool failed = false;  ///< no server answered
    std::vector<Address> list;
  };
  void lookUp(const Host& host, const void* owner, std::function<void(const Addresses&)> callback);
  /// Why there are no addresses.
  static std::string_view describeFailure(const Addresses& addresses) {
    return addresses.failed ? "no DNS server answered" : "the name does not exist";
  }

  /// Finds the upstream proxy of the policy; nullopt if its name does not resolve.
  void findProxy(const void* owner, std::function<void(std::optional<Endpoint>)> callback);

  /// Reports an allowed host that could not be reached; `port` may be 0.
  void reportUnreachable(const std::string& host, std::uint16_t port, std::string_view why);
  /// Records a request. `blocked_range`: Decision::range of the denial. False: it was only counted.
  bool report(Request request, std::string_view blocked_range = {});
  /// Reports a new connection. Returns its number for Connection::recorded(), or 0 if it need not wait.
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
    std::uint64_t ticket = 0;  ///< if several users can be asked (Askers); else the target identifies the question
  };
  Wait ask(const HostPort& target, const Decision& decision, int client, const Endpoint& accepted_on);
  /// Handles the answer for the connection with this ticket.
  void answer(std::uint64_t ticket, bool permitted);
  /// The connection with this ticket no longer waits.
  void forgetTicket(std::uint64_t ticket);
  Result<void> applyChange(std::string_view packet);
  void end() { ended_ = true; }
  /// Removes a connection after the current turn of the loop.
  void retire(Connection* connection);
  void countBytes(std::uint64_t sent, std::uint64_t received);
  [[nodiscard]] bool overByteLimit() const {
    return settings.max_bytes > 0 && totals.sent + totals.received >= settings.max_bytes;
  }
  /// Runs `connection` again in the next turn, since it used up its share of this one.
  void again(Connection* connection) { unfinished_.push_back(connection); }

 private:
  void accept(int listener, bool proxy);
  Result<void> answerQuestion(const Change& change);
  void onSupervisor();
  void sendReport(const Report& report);
  void sendOverflows();
  void sendUnsent(int flags);
  [[nodiscard]] std::size_t freeBytes(const Host& host) const;
  void tick(Clock::time_point now);
  [[nodiscard]] bool isCapture(int descriptor) const;

  sys::Fd supervisor_;
  SandboxSockets sockets_;
  LookupBudget budget_;
  Questions questions_;
  std::unique_ptr<DnsServer> dns_;
  std::unique_ptr<PacketLog> packets_;
  std::unique_ptr<Control> control_;
  std::list<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> unfinished_;
  bool retired_ = false;
  bool supervised_ = false;
  bool ended_ = false;
  RequestLog requests_;
  std::uint64_t opened_ = 0;        // reports with the operation kOpened, counted like the supervisor does
  std::deque<std::string> unsent_;  // reports that did not fit into the supervisor's socket
  Clock::time_point next_tick_{}, next_overflow_{};
};

}  // namespace caisson::egress
