// The target of a connection: checked, resolved, connected to.
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "egress/connection.h"
#include "egress/socks.h"

namespace caisson::egress {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(8);
constexpr auto kPacedTimeout = std::chrono::seconds(30);
constexpr std::size_t kMaxAttempts = 8;  // addresses of one host that are tried for one request

socks::Reply socksReply(int error) {
  if (error == ECONNREFUSED) return socks::Reply::refused;
  if (error == ENETUNREACH) return socks::Reply::network_unreachable;
  return socks::Reply::host_unreachable;
}

}  // namespace

void Connection::beginCaptured(const Endpoint& target) {
  HostPort wanted;
  wanted.port = target.port;
  wanted.host.address = target.address;
  aim(std::move(wanted), Way::captured);
}

void Connection::aim(const HostPort& named, Way way) {
  reportAllowed();  // an earlier request of the same client to another host
  reported_ = false;
  style_ = way;
  const auto target = Target::resolve(server_.names, named, way);
  if (!target) {
    return denyObject("connect", named, {false, "no name was looked up that has this address", {}});
  }
  target_ = *target;
  has_target_ = true;
  if (!permitted_ || !permitted_->sameAs(target_)) permitted_.reset();
  const Decision decision = judge();
  const auto [asking, ticket] =
      decision.allowed ? Server::Wait{} : server_.ask(target_.place(), decision, client_.get(), accepted_on_);
  if (!decision.allowed && !asking) return deny("connect", decision);
  dropUpstream();  // of an earlier request to another host
  aliases_.clear();
  addresses_.clear();
  upstream_ready_ = upstream_ended_ = false;
  from_upstream_.clear();
  to_upstream_.clear();
  if (!asking) return goToTarget(decision);
  phase_ = Phase::asking;
  ticket_ = ticket;
  watchAll();
}

Decision Connection::judge() const {
  Decision decision = server_.rules.judge(target_.host(), target_.port());
  if (!decision.allowed && decision.askable && permitted_ && permitted_->sameAs(target_)) {
    return {true, "allowed once by a person", {}};
  }
  return decision;
}

Decision Connection::judgeConnected() const {
  Decision decision = judge();
  if (decision.allowed && !addresses_.empty()) {
    const Decision by_address = server_.judgeResolved(target_.host(), target_.port(), aliases_, addresses_);
    if (!by_address.allowed) return by_address;
  }
  return decision;
}

void Connection::answered(const HostPort& target, bool permitted) {
  if (phase_ == Phase::asking && ticket_ == 0 && target_.place() == target) takeAnswer(permitted);
}

void Connection::answered(std::uint64_t ticket, bool permitted) {
  if (phase_ == Phase::asking && ticket_ == ticket) takeAnswer(permitted);
}

void Connection::returnTicket() {
  if (const std::uint64_t ticket = std::exchange(ticket_, 0)) server_.forgetTicket(ticket);
}

void Connection::takeAnswer(bool permitted) {
  returnTicket();
  if (permitted) permitted_ = target_;
  const Decision decision = judge();
  if (!decision.allowed) return deny("connect", decision);
  goToTarget(decision);
}

void Connection::goToTarget(const Decision& decision) {
  rule_ = decision.rule;
  phase_ = Phase::connecting;
  active_ = connecting_since_ = Clock::now();
  watchAll();
  server_.lookUp(target_.host(), target_.port(), this, [this](const Server::Addresses& addresses) {
    if (phase_ == Phase::connecting) onAddresses(addresses);
  });
}

void Connection::onAddresses(const Server::Addresses& addresses) {
  resolved_ = Clock::now();
  if (!addresses.decision.allowed) return deny("connect", addresses.decision);
  if (addresses.list.empty()) return unreachable(Server::describeFailure(addresses));
  aliases_ = addresses.aliases;
  addresses_ = addresses.list;
  if (addresses_.size() > kMaxAttempts) addresses_.resize(kMaxAttempts);
  next_address_ = 0;
  if (server_.settings.upstream_proxy.empty()) return connectNext();
  server_.findProxy(this, [this](std::optional<Endpoint> proxy) {
    if (phase_ != Phase::connecting) return;
    if (!proxy) return unreachable("the name of the upstream proxy leads nowhere");
    proxy_ = proxy;
    connectNext();
  });
}

void Connection::askProxy() {
  phase_ = Phase::proxying;
  const std::string where = HostPort{{{}, address_}, target_.port()}.text();
  to_upstream_ = "CONNECT " + where + " HTTP/1.1\r\nHost: " + where + "\r\n\r\n";
  from_upstream_.clear();
  onProxyAnswer();
}

void Connection::onProxyAnswer() {
  if (denyOverLimit()) return;
  if (!flush(upstream_.get(), to_upstream_) || !readInto(upstream_.get(), from_upstream_, upstream_ended_)) {
    return unreachable("the upstream proxy broke off");
  }
  constexpr bool kWithoutBody = true;  // after the head of a granted CONNECT come the server's bytes
  const http::ResponseHead head = http::parseResponse(from_upstream_, kWithoutBody);
  if (head.status == http::Status::more && !upstream_ended_) {
    const std::uint32_t write = to_upstream_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT);
    server_.loop.watch(upstream_.get(), EPOLLIN | write, this);
    return;
  }
  if (head.status == http::Status::done && head.code / 100 == 2) {
    from_upstream_.erase(0, head.used);
    return onConnected();
  }
  const std::string code = head.status == http::Status::done ? " with " + std::to_string(head.code) : "";
  errno = EHOSTUNREACH;
  unreachable("the upstream proxy refused" + code);
}

void Connection::connectNext() {
  dropUpstream();
  paced_ = !server_.attempts.mayConnect(Clock::now());
  if (paced_) return;  // tick() tries again
  int error = EHOSTUNREACH;
  grows_ = false;
  const int buffer_bytes = server_.bufferBytes();
  grows_ = buffer_bytes == 0;
  if (!grows_) boundBuffers(client_.get(), buffer_bytes);
  while (next_address_ < addresses_.size()) {
    address_ = addresses_[next_address_++];
    upstream_ = startConnect(proxy_ ? *proxy_ : Endpoint{address_, target_.port()}, buffer_bytes);
    if (upstream_) {
      connecting_since_ = Clock::now();
      server_.loop.watch(upstream_.get(), EPOLLOUT, this);
      return;
    }
    error = errno;
  }
  errno = error;
  unreachable(errnoName(error));
}

void Connection::tickTarget(Clock::time_point now) {
  if (phase_ == Phase::proxying) {
    if (now - connecting_since_ <= kConnectTimeout) return;
    errno = ETIMEDOUT;
    return unreachable("the upstream proxy does not answer");
  }
  if (paced_) {
    if (now - resolved_ <= kPacedTimeout) return connectNext();
    errno = ETIMEDOUT;
    return unreachable("this sandbox made too many connections in the last minute");
  }
  if (!upstream_ || now - connecting_since_ <= kConnectTimeout) return;
  errno = ETIMEDOUT;
  return next_address_ < addresses_.size() ? connectNext() : unreachable("ETIMEDOUT");
}

void Connection::dropUpstream() {
  if (!upstream_) return;
  const auto now = Clock::now();
  const bool answered = host_spoke_ || down_.bytes() > 0;
  if (!answered) server_.attempts.countFruitless(now);
  if (upstream_ready_ && !host_ended_first_ && !upstream_ended_) {
    // The side that ends first keeps the port for a minute. If both have ended, it is too late for a reset.
    const bool over = up_.ended() && down_.ended();
    if (over || server_.attempts.mayLinger(now)) {
      server_.attempts.countLingering(now);
    } else {
      resetOnClose(upstream_.get());
    }
  }
  server_.loop.forget(upstream_.get());
  upstream_.reset();
  host_spoke_ = host_ended_first_ = false;
}

bool Connection::abandoned() const {
  if (!client_ended_ || !from_client_.empty()) return false;
  return target_.way() != Way::captured || firstBytesDecide();
}

void Connection::unreachable(std::string_view why) {
  const std::string text =
      target_.host().text() + ":" + std::to_string(target_.port()) + ": " + std::string(why) + "\n";
  const int error = errno;
  server_.reportUnreachable(target_.host().text(), target_.port(), why);
  errno = error;
  if (style_ == Way::captured) return close(true);
  if (style_ == Way::socks) {
    const auto reply = socks::buildReply(socksReply(errno));
    to_client_.append(reply.begin(), reply.end());
    return finishAfterFlush();
  }
  answer(502, "Bad Gateway", "caisson: cannot reach " + text);
}

void Connection::onConnected() {
  upstream_ready_ = true;
  active_ = connected_ = Clock::now();
  ++server_.totals.connections;
  reportOpened();
  if (opened_number_ == 0) return beginTransfer();
  phase_ = Phase::recording;
  server_.loop.forget(upstream_.get());  // if the host closes it meanwhile, beginTransfer() notices
  watchAll();
}

void Connection::recorded(std::uint64_t connections) {
  if (phase_ == Phase::recording && opened_number_ <= connections) beginTransfer();
}

void Connection::beginTransfer() {
  if (style_ == Way::http) {
    phase_ = Phase::http;
    return pumpHttp();
  }
  if (style_ == Way::tunnel_request) to_client_ += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (style_ == Way::socks) {
    const auto reply = socks::buildReply(socks::Reply::granted);
    to_client_.append(reply.begin(), reply.end());
  }
  phase_ = Phase::first_bytes;
  progress();
}

}  // namespace caisson::egress
