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
#include "egress/target.h"

namespace caisson::egress {

/// Maximum number of buffered bytes per direction while the other side does not read.
inline constexpr std::size_t kBufferBytes = 64 * 1024;

class Connection final : public Watcher {
 public:
  /// `accepted_on`: the address that the client connected to, before any redirection.
  Connection(Server& server, sys::Fd client, const Endpoint& accepted_on);
  ~Connection();

  /// Call one of the two begin functions once, right after construction. This one: accepted on the proxy port, so the
  /// client will name its target (SOCKS or HTTP).
  void beginProxy();
  /// The connection was captured on its way to `target`.
  void beginCaptured(const Endpoint& target);

  void onEvents(int descriptor, std::uint32_t events) override;
  /// Continues after Server::again(): the connection had used up its share of the last turn.
  void resume();
  /// Enforces the timeouts of the current phase and adds the bytes of this connection to the totals. Does nothing while
  /// it waits for a user.
  void tick(Clock::time_point now);
  /// After a rule change: resets and reports the connection if it is no longer allowed. One that waits for the user
  /// connects if it is allowed now, and keeps waiting while no rule denies it.
  void judgeAgain();
  /// The user was prompted for `target`: if this connection waits for that answer, it continues or is denied.
  void answered(const HostPort& target, bool permitted);
  /// Same, where connections to one target may wait for different users' answers.
  void answered(std::uint64_t ticket, bool permitted);
  /// The supervisor has recorded the reports of the first `connections` opened connections; if this one is among them
  /// and waits for that, it starts to carry data.
  void recorded(std::uint64_t connections);
  [[nodiscard]] bool closed() const { return phase_ == Phase::closed; }
  /// Whether its socket buffers may grow (Server::bufferBytes()).
  [[nodiscard]] bool grows() const { return grows_ && upstream_.valid(); }

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

  // connection_target.cc: the target
  /// Sets the target that the client named, and checks it: connects, waits for the user's answer, or denies. Call again
  /// for a request to another host.
  void aim(const HostPort& named, Way way);
  /// The user's answer for this connection arrived: connects or denies. Rules are checked again, since they may have
  /// changed.
  void takeAnswer(bool permitted);
  /// Tells PromptClients that this connection no longer waits for its ticket. Nothing without a ticket.
  void returnTicket();
  /// Checks the target against the rules. A one-time permission by the user counts only while no rule denies the
  /// target.
  [[nodiscard]] Decision judge() const;
  /// judge(), and what the target resolved to, if that is known.
  [[nodiscard]] Decision judgeConnected() const;
  /// Starts resolving the target, which `decision` allows; onAddresses() continues.
  void goToTarget(const Decision& decision);
  /// The target was resolved: connects to the first address, or to the upstream proxy. Denies if one address is
  /// blocked or the lookup was over the budget; reports the host as unreachable if there is no address.
  void onAddresses(const Server::Addresses& addresses);
  /// Starts connecting to the next untried address, always by way of the upstream proxy if there is one. Reports the
  /// host as unreachable if none is left. Waits if the sandbox has used up its connections for now.
  void connectNext();
  /// Timeouts while the target is being connected, or waits for its turn (AttemptLimiter).
  void tickTarget(Clock::time_point now);
  /// Closes the connection to the target, if any, and counts it.
  void dropUpstream();
  /// Whether the client closed its side without having sent anything that a host could respond to.
  [[nodiscard]] bool abandoned() const;
  /// Every HTTP request must be for the target.
  [[nodiscard]] bool pinned() const { return target_.way() != Way::http; }
  /// Connected to the upstream proxy: sends it a CONNECT. Names the checked address, not the host, since the proxy must
  /// not resolve the name differently.
  void askProxy();
  /// The socket to the upstream proxy is ready: sends the rest of the CONNECT and reads the reply. On success continues
  /// with onConnected().
  void onProxyAnswer();
  /// The connection to the target is made: reports it and, if needed, waits until the supervisor has recorded it.
  void onConnected();
  /// Reports the new connection at once and not only when it closes: the sandbox or its supervisor may be killed before
  /// that.
  void reportOpened();
  /// Confirms the connection to a SOCKS or CONNECT client. Then handles a pending HTTP request, or waits for the
  /// client's first bytes, which onFirstBytes() checks.
  void beginTransfer();
  /// Reports an allowed target that could not be reached and answers the client in its protocol. Reads errno for the
  /// SOCKS reply.
  void unreachable(std::string_view why);

  // connection.cc: lifecycle
  /// Reports a denied request for the target and answers the client in its protocol, or resets the connection.
  void deny(std::string operation, const Decision& decision);
  /// The same for another target than the connection's, such as that of a redirect.
  void denyObject(std::string operation, const HostPort& target, const Decision& decision);
  /// Closes the connection to the target now. Sends the client what is buffered, then closes once the client has closed
  /// its side or was silent for two seconds.
  void finishAfterFlush();
  /// Reports the bytes and the duration of the current target, once. Nothing if it was denied or never connected.
  void reportAllowed();
  /// Denies the connection if network.max_bytes is used up; false if it is not.
  bool denyOverLimit();
  /// Adds the bytes read since the last call to the server's totals, which network.max_bytes limits. Bytes are counted
  /// when they are read, whichever side sent them: reading is all that a peer needs to send more.
  void countBytes();
  /// Closes all sockets and retires this object. `reset`: the client gets a TCP reset instead of a normal end.
  void close(bool reset);
  /// Sets the events to wait for by phase and by what is buffered. Tunnels and brokered connections set their own.
  void watchAll();
  /// Appends what can be read without blocking, up to kBufferBytes and network.max_bytes, and counts it. Sets `ended`
  /// at end of file; false on an error.
  bool readInto(int descriptor, std::string& buffer, bool& ended);
  /// Sends as much of `buffer` as possible without blocking and removes it. False on an error.
  bool flush(int descriptor, std::string& buffer);
  /// Processes available data according to the phase.
  void progress();

  // connection_start.cc: the client's first bytes
  /// First bytes on the proxy port: tells SOCKS 5, SOCKS 4 (denied) and HTTP apart.
  void onHello();
  /// Handles a SOCKS request once it is complete.
  void onSocks();
  /// Handles the first HTTP request to the proxy: a CONNECT, or a request with an absolute URL.
  void onProxyRequest();
  /// Detects the protocol by the client's first bytes: TLS, HTTP, or another one, which is denied on ports 80 and 443.
  void onFirstBytes();
  /// Whether this port is for HTTP and TLS only: web ports, and those of hosts with a credential.
  [[nodiscard]] bool firstBytesDecide() const;
  /// Once the TLS hello is complete: starts the transfer if its server name is the target or, for an address, missing
  /// or an allowed name; else denies it with a TLS alert. Settings can allow a missing name and an encrypted hello.
  void checkTls();
  /// The denial of a server name that is not the target's; without a rule if it is the target's, or an allowed name of
  /// a target that is an address.
  [[nodiscard]] Decision judgeServerName(std::string_view text) const;
  /// From now on forwards raw bytes in both directions.
  void beginTunnel();
  /// Forwards what is available in both directions, up to the share of one turn. Closes the connection at its end, or
  /// if network.max_bytes is used up.
  void pumpTunnel();

  // connection_broker.cc: hosts with a credential
  /// Hands the connection to the credential broker. Denies it if that fails: the request would reach the host without
  /// its credential.
  void beginBrokered();
  /// `descriptor`, one of the four sockets of a brokered connection, is ready.
  void onBrokeredEvents(int descriptor);
  /// As pumpTunnel(), between client and broker and between broker and host.
  void pumpBrokered();
  /// Forwards bytes between broker and host; true if there is more to do at once. After an error of either socket
  /// closes both; the broker then answers the client or breaks off.
  bool pumpUpstreamSide();
  /// Closes our ends of the pairs to the broker, if any.
  void dropBroker();

  // connection_http.cc: plain HTTP
  /// Forwards HTTP requests and responses as far as possible without blocking, each of them checked, up to the share of
  /// one turn. Denies the connection if network.max_bytes is used up.
  void pumpHttp();
  /// One round of pumpHttp(): reads, forwards and sends at most one buffer in each direction. False: nothing moved, or
  /// the phase has changed.
  bool pumpHttpOnce();
  /// Checks and forwards the next request's head. False: it is incomplete, was denied, or needs another connection
  /// (another target, a CONNECT, or the host has closed), which is then made first.
  bool takeRequest();
  /// Connects to the target of a request to the proxy.
  void aimForRequest(const http::RequestHead& head);
  /// Forwards what is available of the response; true if that was something. Answers with 502 for a malformed or
  /// missing head, with 403 for a denied redirect, and resets if there was no request or the body is malformed or cut
  /// short.
  bool takeResponse();
  /// Whether a redirect may be forwarded: to the same host, an allowed one, or one that the user can be prompted for.
  /// If not, denies the request, so that the client gets the reason now and not with its next connection.
  bool judgeRedirect(std::string_view location);
  /// Answers the client's request with a response of our own and closes the connection. In the middle of another
  /// response, only resets it.
  void answer(int code, std::string_view reason, const std::string& text);

  Server& server_;
  Phase phase_ = Phase::hello;
  Way style_ = Way::captured;  ///< how the client gets errors: as its target was named, or HTTP once it sent that
  sys::Fd client_, upstream_;
  bool upstream_ready_ = false;                         ///< connected to the target, not only connecting
  bool host_spoke_ = false, host_ended_first_ = false;  ///< of the current connection to the target
  bool paced_ = false;                                  ///< waits for its turn to connect, see AttemptLimiter
  bool hangup_seen_ = false;                            ///< the client closed its side while it waited
  bool grows_ = false;                                  ///< see grows()
  std::string from_client_, to_client_, from_upstream_, to_upstream_;
  bool client_ended_ = false, upstream_ended_ = false;

  const Endpoint accepted_on_;
  std::uint64_t ticket_ = 0;  ///< of the pending answer, if tickets are used
  Target target_;
  bool has_target_ = false;           ///< aim() was called
  std::optional<Target> permitted_;   ///< by the user, for this connection only
  std::string rule_;                  ///< that allowed the target
  std::vector<std::string> aliases_;  ///< of the target
  std::vector<Address> addresses_;    ///< of the target, all of them allowed
  std::size_t next_address_ = 0;      ///< index of the next one to try
  Address address_;                   ///< the one that is being connected to, or is connected
  std::optional<Endpoint> proxy_;     ///< the upstream proxy, if the policy has one
  Clock::time_point began_ = Clock::now(), active_ = began_, resolved_ = began_, connecting_since_ = began_,
                    connected_ = began_;
  bool reported_ = false;            ///< the current target has its report: allowed or denied
  std::uint64_t opened_number_ = 0;  ///< number of its report as opened (Server::reportOpened); 0: need not wait

  Flow up_, down_;                           ///< of a tunnel: client to host, and host to client
  sys::Fd broker_client_, broker_upstream_;  ///< our ends of the pairs to the broker
  Flow to_broker_, from_broker_;             ///< client side of a brokered connection; up_ and down_ are the host side
  std::uint64_t read_sent_ = 0, read_received_ = 0;  ///< from the client and the host, without flows
  std::uint64_t sent_ = 0, received_ = 0, counted_sent_ = 0, counted_received_ = 0, reported_sent_ = 0,
                reported_received_ = 0;

  bool aimed_for_request_ = false;  ///< a connection was made for the HTTP request that comes next
  bool response_due_ = false;       ///< a request was sent and its response is not complete
  bool head_request_ = false, websocket_ = false, keep_alive_ = true;  ///< of the current HTTP request
  http::BodyFramer request_body_, response_body_;
  http::InterimCount interim_;       ///< responses to the current HTTP request
  bool response_head_done_ = false;  ///< its final response head was forwarded
};

}  // namespace caisson::egress
