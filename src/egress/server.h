// Everything one sandbox's egress consists of: its listeners, the connections through it, its resolver.
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

/// How the sandbox's connections reach us (isolation/network.cc makes the sockets).
struct SandboxSockets {
  bool redirected = false;  ///< `capture` gets every port by redirection; else one listener per permitted port
  sys::Fd proxy, dns, dns_stream, log;
  std::vector<sys::Fd> capture;
};

class Server final : public Watcher {
 public:
  Server(Settings settings, Rules rules, sys::Fd supervisor);
  ~Server();

  Result<void> open();
  Result<void> serve(SandboxSockets sockets);
  /// For a session: pid 1 of the sandbox, and where changes come from. Before serve().
  void useControl(sys::Fd init, sys::Fd listener);
  /// Where connections to hosts with a credential are handed to. Before serve().
  void useBroker(sys::Fd link);
  /// Until the supervisor, or for a session the kernel, says that the sandbox is gone.
  void run();

  void onEvents(int descriptor, std::uint32_t events) override;

  // What its parts share.
  Loop loop;
  const Settings settings;
  Rules rules;
  SyntheticNames names;
  OwnAddresses own_addresses;
  PipePool pipes;
  std::unique_ptr<Resolver> resolver;
  std::unique_ptr<BrokerLink> broker;  ///< or none
  Totals totals;

  /// The addresses of a judged name, each of them judged; the first refusal, when one is not permitted. A
  /// lookup that goes out counts against the sandbox's budget.
  struct Addresses {
    Decision decision;
    bool failed = false;  ///< nobody could say
    std::vector<Address> list;
  };
  void lookUp(const Host& host, const void* owner, std::function<void(const Addresses&)> callback);

  /// Where connections go first, when the policy names an upstream proxy (N11); nothing if its name leads nowhere.
  void findProxy(const void* owner, std::function<void(std::optional<Endpoint>)> callback);

  /// Puts a request on record. `blocked_range`: Decision::range of the refusal. False: it is only counted.
  bool report(Request request, std::string_view blocked_range = {});
  /// Reports a connection that was made. Its number for Connection::recorded(), or 0: it need not wait for that.
  std::uint64_t reportOpened(Request request) { return report(std::move(request)) ? opened_ : 0; }
  /// Counts refusals of which nothing but the number is known.
  void reportUnknown(std::uint64_t count);
  /// Reports what was only counted so far, so that records and overflows add up to all requests.
  void reportRemaining();
  /// Whether anybody is there to decide about hosts that nobody named.
  [[nodiscard]] bool canAsk() const;
  /// A connection to `target`, refused by `decision`, may wait for a person's answer.
  struct Wait {
    bool waits = false;
    std::uint64_t ticket = 0;  ///< where several can be asked (Askers); else the target names the question
  };
  Wait ask(const HostPort& target, const Decision& decision, int client, const Endpoint& accepted_on);
  /// The answer for the connection with this ticket has come.
  void answer(std::uint64_t ticket, bool permitted);
  /// The connection with this ticket waits no longer.
  void forgetTicket(std::uint64_t ticket);
  Result<void> applyChange(std::string_view packet);
  void end() { ended_ = true; }
  /// Ends a connection after the present turn of the loop.
  void retire(Connection* connection);
  void countBytes(std::uint64_t sent, std::uint64_t received);
  [[nodiscard]] bool overByteLimit() const {
    return settings.max_bytes > 0 && totals.sent + totals.received >= settings.max_bytes;
  }
  /// Runs `connection` again in the next turn although nothing new happened: it used up its share of this one.
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
  std::uint64_t opened_ = 0;        // reports with the operation kOpened, as the supervisor counts them
  std::deque<std::string> unsent_;  // reports that the supervisor had no room for
  Clock::time_point next_tick_{}, next_overflow_{};
};

}  // namespace caisson::egress
