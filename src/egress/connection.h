// One connection of the sandbox, from its first byte to its end.
//
//   proxy port:  SOCKS or HTTP request -> target
//   captured:    original address -> target
//   target:      judged -> resolved -> every address judged -> connected to one of these
//   then:        the client's first bytes: a TLS hello must name the target, an HTTP request must be for it
//   then:        bytes both ways (splice), or HTTP requests one by one, each of them judged
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "egress/http_body.h"
#include "egress/http_head.h"
#include "egress/relay.h"
#include "egress/server.h"
#include "egress/sockets.h"

namespace caisson::egress {

/// What a connection keeps at most of bytes that the other side does not take yet.
inline constexpr std::size_t kBufferBytes = 64 * 1024;

class Connection final : public Watcher {
 public:
  /// `accepted_on`: where the client believes to be connected to.
  Connection(Server& server, sys::Fd client, const Endpoint& accepted_on);
  ~Connection();

  /// Came to the proxy port: the client will say where it wants to go.
  void beginProxy();
  /// Was captured on its way to `target`.
  void beginCaptured(const Endpoint& target);

  void onEvents(int descriptor, std::uint32_t events) override;
  void resume() { phase_ == Phase::brokered ? pumpBrokered() : pumpTunnel(); }
  void tick(Clock::time_point now);
  /// Ends it if the rules, which have changed, no longer let it be (N10); one that waited may go on.
  void judgeAgain();
  /// A person was asked about `target`: if this connection waits for that, it goes on or is refused.
  void answered(const HostPort& target, bool permitted);
  /// The same where connections to one target may wait for answers of different persons.
  void answered(std::uint64_t ticket, bool permitted);
  /// The first `connections` that were reported are on record.
  void recorded(std::uint64_t connections);
  [[nodiscard]] bool closed() const { return phase_ == Phase::closed; }

 private:
  enum class Phase : std::uint8_t {
    hello,        ///< first bytes on the proxy port
    socks,        ///< greeting answered, request awaited
    asking,       ///< a person decides about the target
    connecting,   ///< the target is being resolved or connected
    proxying,     ///< the upstream proxy was asked to connect
    recording,    ///< connected; the supervisor records it before a byte goes out
    first_bytes,  ///< connected; the client's first bytes decide how it goes on
    http,         ///< requests one by one
    tunnel,       ///< bytes
    brokered,     ///< bytes by way of the credential broker
    finishing,    ///< only what is left for the client still goes out
    closed,
  };
  enum class Style : std::uint8_t { captured, tunnel_request, socks, http };

  // connection.cc: life and target
  void aim(HostPort target, Style style);
  void takeAnswer(bool permitted);
  void returnTicket();
  [[nodiscard]] Decision judge() const;
  void goToTarget(const Decision& decision);
  void onAddresses(const Server::Addresses& addresses);
  void connectNext();
  void askProxy();
  void onProxyAnswer();
  void onConnected();
  void reportOpened();
  void beginTransfer();
  void unreachable(std::string_view why);
  void deny(std::string operation, const Decision& decision);
  void denyObject(std::string operation, const HostPort& target, const Decision& decision);
  void finishAfterFlush();
  void reportAllowed();
  void countBytes();
  void close(bool reset);
  void watchAll();
  bool readInto(int descriptor, std::string& buffer, bool& ended);
  bool flush(int descriptor, std::string& buffer);
  void progress();

  // connection_start.cc: what the client says first
  void onHello();
  void onSocks();
  void onProxyRequest();
  void onFirstBytes();
  void checkTls();
  void beginTunnel();
  void pumpTunnel();

  // connection_broker.cc: hosts with a credential
  void beginBrokered();
  void onBrokeredEvents(int descriptor);
  void pumpBrokered();
  bool pumpUpstreamSide();
  void dropBroker();

  // connection_http.cc: plain HTTP
  void pumpHttp();
  bool takeRequest();
  bool takeResponse();
  bool judgeRedirect(std::string_view location);
  void answer(int code, std::string_view reason, const std::string& text);

  Server& server_;
  Phase phase_ = Phase::hello;
  Style style_ = Style::captured;
  sys::Fd client_, upstream_;
  bool upstream_ready_ = false;
  std::string from_client_, to_client_, from_upstream_, to_upstream_;
  bool client_ended_ = false, upstream_ended_ = false, upstream_shut_ = false;

  const Endpoint accepted_on_;
  std::uint64_t ticket_ = 0;  ///< of the answer it waits for, where tickets are given out
  HostPort target_;
  bool has_target_ = false;
  std::optional<HostPort> permitted_;  ///< by a person, for this connection only
  std::string rule_;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  Address address_;
  std::optional<Endpoint> proxy_;  ///< the upstream one, where the policy has it
  Clock::time_point began_ = Clock::now(), active_ = began_, connecting_since_ = began_, connected_ = began_;
  bool reported_ = false;
  std::uint64_t opened_number_ = 0;  ///< of its report that it is open (Server::reportOpened)

  Flow up_, down_;
  sys::Fd broker_client_, broker_upstream_;  ///< our ends of what the broker reads and writes
  Flow to_broker_, from_broker_;  ///< the client's side of a brokered connection; up_ and down_ are the host's
  std::uint64_t sent_ = 0, received_ = 0, counted_sent_ = 0, counted_received_ = 0, reported_sent_ = 0,
                reported_received_ = 0;

  bool pinned_ = false;        ///< every HTTP request must be for the target
  bool response_due_ = false;  ///< a request is out and its response is not complete
  bool head_request_ = false, websocket_ = false, keep_alive_ = true;
  http::BodyFramer request_body_, response_body_;
  bool response_head_done_ = false;
};

}  // namespace caisson::egress
