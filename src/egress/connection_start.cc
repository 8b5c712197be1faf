// The first bytes of a client: to the proxy, and through an open connection.
#include <sys/epoll.h>

#include <cerrno>

#include "egress/broker_link.h"
#include "egress/client_hello.h"
#include "egress/connection.h"
#include "egress/socks.h"

namespace caisson::egress {
namespace {

std::span<const std::uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

constexpr char kSocks5 = 5, kSocks4 = 4;
/// access_denied: TLS clients show it as a denial, not as a broken connection.
constexpr std::string_view kAccessDenied("\x15\x03\x03\x00\x02\x02\x31", 7);

}  // namespace

void Connection::onHello() {
  if (from_client_.empty()) return;
  if (from_client_[0] == kSocks4) {
    style_ = Way::socks;
    HostPort nowhere;
    nowhere.host.name = "socks4";
    return denyObject("socks", nowhere, {false, "SOCKS 4 carries no host names", "use SOCKS 5"});
  }
  if (from_client_[0] != kSocks5) return onProxyRequest();
  const socks::Step greeting = socks::parseGreeting(bytesOf(from_client_));
  if (greeting.kind == socks::Step::Kind::more) return;
  from_client_.erase(0, greeting.used);
  to_client_ += kSocks5;
  if (greeting.kind == socks::Step::Kind::bad) {
    to_client_ += '\xff';
    return finishAfterFlush();
  }
  to_client_ += '\0';
  style_ = Way::socks;
  phase_ = Phase::socks;
  progress();
}

void Connection::onSocks() {
  if (from_client_.empty()) return;
  socks::Request request = socks::parseRequest(bytesOf(from_client_));
  if (request.step.kind == socks::Step::Kind::more) return;
  if (request.step.kind == socks::Step::Kind::bad) {
    const Decision refusal{false, request.why, {}};
    Request record;
    record.operation = "socks";
    record.host = request.target.host.text();
    record.port = request.target.port;
    record.rule = refusal.rule;
    server_.report(std::move(record));
    const auto reply = socks::buildReply(request.reply);
    to_client_.append(reply.begin(), reply.end());
    return finishAfterFlush();
  }
  from_client_.erase(0, request.step.used);
  aim(request.target, Way::socks);
}

void Connection::onProxyRequest() {
  style_ = Way::http;
  const http::RequestHead head = http::parseRequest(from_client_, 80);
  if (head.status == http::Status::more) return;
  if (head.status == http::Status::bad) {
    return answer(400, "Bad Request", "caisson: the request is refused: " + std::string(head.flaw) + "\n");
  }
  if (head.connect) {
    const HostPort target = head.authority;
    from_client_.erase(0, head.used);
    return aim(target, Way::tunnel_request);
  }
  if (!head.absolute) {
    return answer(400, "Bad Request", "caisson: this is a proxy; the request names no host in its target\n");
  }
  aimed_for_request_ = true;
  aim(head.authority, Way::http);  // the request itself is handled once connected
}

bool Connection::firstBytesDecide() const {
  const bool web = target_.port() == 80 || target_.port() == 443;
  return web || (server_.broker && server_.broker->handles(target_.place()));
}

void Connection::onFirstBytes() {
  // Where the protocol has to name its host, nothing passes before the client has done so.
  const bool decide = firstBytesDecide();
  // Bounds the buffer for a client that sends slowly and does not read.
  if (!decide && to_client_.size() < kBufferBytes && !readInto(upstream_.get(), from_upstream_, upstream_ended_))
    return close(true);
  if (denyOverLimit()) return;
  if (!from_upstream_.empty()) {  // the server sends first
    to_client_ += from_upstream_;
    from_upstream_.clear();
    if (!flush(client_.get(), to_client_)) return close(true);
  }
  if (from_client_.empty()) {
    if (decide && client_ended_) return close(true);
    if (client_ended_) return beginTunnel();
    // The host's end is passed on, but what the client still sends is judged.
    if (upstream_ended_ && to_client_.empty()) ::shutdown(client_.get(), SHUT_WR);
    return;
  }
  const ClientHello hello = parseClientHello(bytesOf(from_client_));
  if (hello.kind != ClientHello::Kind::none) return checkTls();
  const http::Looks looks = http::looksLikeRequest(from_client_);
  if (looks == http::Looks::more && !client_ended_) return;
  if (looks != http::Looks::other) {
    phase_ = Phase::http;
    style_ = Way::http;
    return pumpHttp();
  }
  // Unknown protocols name no host. On web ports many hosts share one address, so only protocols that name their host
  // are allowed; on other ports the address that the name resolved to is the boundary.
  if (decide) {
    return deny("connect", {false, "neither TLS nor HTTP on port " + std::to_string(target_.port()), {}});
  }
  beginTunnel();
}

void Connection::checkTls() {
  const ClientHello hello = parseClientHello(bytesOf(from_client_));
  if (hello.kind == ClientHello::Kind::more && !client_ended_) return;
  Decision refusal;
  if (hello.kind != ClientHello::Kind::tls) {
    refusal.rule = "the TLS hello is malformed: " + std::string(hello.flaw);
  } else if (hello.encrypted && !server_.settings.allow_encrypted_hello) {
    refusal = {false, "an encrypted TLS hello hides the host's name", "network.allow_encrypted_hello"};
  } else if (!hello.has_name) {
    // There is no server name for an address.
    if (!target_.host().address && !server_.settings.allow_missing_sni) {
      refusal = {false, "the TLS hello names no host", "network.allow_missing_server_name"};
    }
  } else {
    refusal = judgeServerName(hello.name);
  }
  if (refusal.rule.empty()) {
    return server_.broker && server_.broker->handles(target_.place()) ? beginBrokered() : beginTunnel();
  }
  to_client_ += kAccessDenied;
  flush(client_.get(), to_client_);
  Request request;
  request.operation = "tls";
  request.host = target_.host().text();
  request.port = target_.port();
  request.rule = refusal.rule;
  request.remedy = refusal.remedy;
  reported_ = true;
  server_.report(std::move(request));
  finishAfterFlush();
}

Decision Connection::judgeServerName(std::string_view text) const {
  Decision refusal;
  const auto name = canonicalHost(text);
  if (!name) {
    refusal.rule = "the TLS server name is refused: " + std::string(name.error());
    return refusal;
  }
  const auto named = Target::resolve(server_.names, {*name, target_.port()}, target_.way());
  if (named && named->sameAs(target_)) return refusal;
  if (!named || !target_.host().address) {
    refusal.rule = "the TLS server name " + name->text() + " is not the host that was asked for";
    return refusal;
  }
  const Decision by_name = server_.rules.judge(named->host(), named->port());
  if (!by_name.allowed) {
    refusal = {false, "the TLS server name " + name->text() + ": " + by_name.rule, by_name.remedy};
  }
  return refusal;
}

void Connection::beginTunnel() {
  phase_ = Phase::tunnel;
  to_upstream_ += from_client_;
  std::string().swap(from_client_);
  constexpr std::uint32_t kAll = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  server_.loop.watch(client_.get(), kAll, this);
  server_.loop.watch(upstream_.get(), kAll, this);
  pumpTunnel();
}

void Connection::pumpTunnel() {
  if (phase_ != Phase::tunnel) return;
  countBytes();
  if (denyOverLimit()) return;
  if (!to_upstream_.empty() && !flush(upstream_.get(), to_upstream_)) return close(true);
  if (!to_client_.empty() && !flush(client_.get(), to_client_)) return close(true);
  Flow::State up = Flow::State::waiting, down = Flow::State::waiting;
  if (to_upstream_.empty()) up = up_.pump(server_.pipes, client_.get(), upstream_.get(), server_.allowance());
  countBytes();  // what one direction reads, the other may not
  if (to_client_.empty()) down = down_.pump(server_.pipes, upstream_.get(), client_.get(), server_.allowance());
  if (down_.ended() && !up_.ended()) host_ended_first_ = true;
  countBytes();  // now, so that other connections see in this turn what is left
  if (up == Flow::State::broken || down == Flow::State::broken) return close(true);
  if (up == Flow::State::ended && down == Flow::State::ended) return close(false);
  if (denyOverLimit()) return;
  if (up == Flow::State::more || down == Flow::State::more) {
    server_.again(this);
  }
}

}  // namespace caisson::egress
