// One connection of the sandbox, from its first byte to its end.
//
//   proxy port:  SOCKS or HTTP request -> target
//   captured:    original address -> target
//   target:      checked -> resolved -> every address checked -> connected to one of these
//   then:        the client's first bytes: a TLS hello must name the target, an HTTP request must be for it
//   then:        bytes both ways (splice), or HTTP requests one by one, each of them checked
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

/// Maximum number of buffered bytes per direction while the other side does not read.
inline constexpr std::size_t kBufferBytes = 64 * 1024;

class Connection final : public Watcher {
 public:
  /// `accepted_on`: the address that the client connected to.
  Connection(Server& server, sys::Fd client, const Endpoint& accepted_on);
  ~Connection();

  /// Accepted on the proxy port: the client will name its target.
  void beginProxy();
  /// Captured on its way to `target`.
  void beginCaptured(const Endpoint& target);

  void onEvents(int descriptor, std::uint32_t events) override;
  void resume() { phase_ == Phase::brokered ? pumpBrokered() : pumpTunnel(); }
  void tick(Clock::time_point now);
  /// After a rule change: closes the connection if it is no longer allowed; a pending one may continue.
  void judgeAgain();
  /// The user was prompted for `target`: if this connection waits for that answer, it continues or is denied.
  void answered(const HostPort& target, bool permitted);
  /// Same, where connections to one target may wait for different users' answers.
  void answered(std::uint64_t ticket, bool permitted);
  /// The supervisor has recorded the first `connections` reports.
  void recorded(std::uint64_t connections);
  [[nodiscard]] bool closed() const { return phase_ == Phase::closed; }

 private:
  enum class Phase : std::uint8_t {
    hello,        ///< first bytes on the proxy port
    socks,        ///< greeting answered, waiting for the request
    asking,       ///< waiting for the user's decision
    connecting,   ///< the target is being resolved or connected
    proxying,     ///< waiting for the upstream proxy to connect
    recording,    ///< connected; the supervisor records it before any byte is sent
    first_bytes,  ///< connected; the client's first bytes select the protocol
    http,         ///< requests one by one
    tunnel,       ///< raw bytes both ways
    brokered,     ///< raw bytes through the credential broker
    finishing,    ///< flushing remaining bytes to the client
    closed,
  };
  enum class Style : std::uint8_t { captured, tunnel_request, socks, http };

  // connection.cc: lifecycle and target
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

  // connection_start.cc: the client's first bytes
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
  std::uint64_t ticket_ = 0;  ///< of the pending answer, if tickets are used
  HostPort target_;
  bool has_target_ = false;
  std::optional<HostPort> permitted_;  ///< by the user, for this connection only
  std::string rule_;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  Address address_;
  std::optional<Endpoint> proxy_;  ///< the upstream proxy, if the policy has one
  Clock::time_point began_ = Clock::now(), active_ = began_, connecting_since_ = began_, connected_ = began_;
  bool reported_ = false;
  std::uint64_t opened_number_ = 0;  ///< number of its open report (Server::reportOpened)

  Flow up_, down_;
  sys::Fd broker_client_, broker_upstream_;  ///< our ends of the pairs to the broker
  Flow to_broker_, from_broker_;             ///< client side of a brokered connection; up_ and down_ are the host side
  std::uint64_t sent_ = 0, received_ = 0, counted_sent_ = 0, counted_received_ = 0, reported_sent_ = 0,
                reported_received_ = 0;

  bool pinned_ = false;        ///< every HTTP request must be for the target
  bool response_due_ = false;  ///< a request was sent and its response is not complete
  bool head_request_ = false, websocket_ = false, keep_alive_ = true;
  http::BodyFramer request_body_, response_body_;
  bool response_head_done_ = false;
};

}  // namespace caisson::egress
