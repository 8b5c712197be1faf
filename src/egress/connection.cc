#include "egress/connection.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "egress/socks.h"

namespace caisson::egress {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(30);
constexpr auto kConnectTimeout = std::chrono::seconds(8);
constexpr auto kRecordTimeout = std::chrono::seconds(30);  // covers a busy audit log, or a full disk being cleaned up
constexpr auto kFarewellTimeout = std::chrono::seconds(2);

socks::Reply socksReply(int error) {
  if (error == ECONNREFUSED) return socks::Reply::refused;
  if (error == ENETUNREACH) return socks::Reply::network_unreachable;
  return socks::Reply::host_unreachable;
}

}  // namespace

Connection::Connection(Server& server, sys::Fd client, const Endpoint& accepted_on)
    : server_(server), client_(std::move(client)), accepted_on_(accepted_on) {
  const int one = 1;
  ::setsockopt(client_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

Connection::~Connection() { close(false); }

void Connection::beginProxy() {
  phase_ = Phase::hello;
  watchAll();
}

void Connection::beginCaptured(const Endpoint& target) {
  HostPort wanted;
  wanted.port = target.port;
  wanted.host.address = target.address;
  aim(std::move(wanted), Style::captured);
}

void Connection::aim(HostPort target, Style style) {
  reportAllowed();  // an earlier request of the same client to another host
  reported_ = false;
  target_ = std::move(target);
  has_target_ = true;
  style_ = style;
  pinned_ = style != Style::http;
  if (target_.host.address && SyntheticNames::isSynthetic(*target_.host.address)) {  // before any range check
    const std::string_view name = server_.names.nameOf(*target_.host.address);
    if (name.empty()) return deny("connect", {false, "no name was looked up that has this address", {}});
    target_.host = {std::string(name), std::nullopt};
  }
  if (permitted_ != target_) permitted_.reset();
  const Decision decision = judge();
  const auto [asking, ticket] =
      decision.allowed ? Server::Wait{} : server_.ask(target_, decision, client_.get(), accepted_on_);
  if (!decision.allowed && !asking) return deny("connect", decision);
  if (upstream_) {  // of an earlier request to another host
    server_.loop.forget(upstream_.get());
    upstream_.reset();
  }
  upstream_ready_ = upstream_ended_ = false;
  from_upstream_.clear();
  to_upstream_.clear();
  if (!asking) return goToTarget(decision);
  phase_ = Phase::asking;
  ticket_ = ticket;
  watchAll();
}

Decision Connection::judge() const {
  Decision decision = server_.rules.judge(target_.host, target_.port);
  if (!decision.allowed && decision.askable && permitted_ == target_) return {true, "allowed once by a person", {}};
  return decision;
}

void Connection::answered(const HostPort& target, bool permitted) {
  if (phase_ == Phase::asking && ticket_ == 0 && target_ == target) takeAnswer(permitted);
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
  server_.lookUp(target_.host, this, [this](const Server::Addresses& addresses) {
    if (phase_ == Phase::connecting) onAddresses(addresses);
  });
}

void Connection::onAddresses(const Server::Addresses& addresses) {
  if (!addresses.decision.allowed) return deny("connect", addresses.decision);
  if (addresses.list.empty()) return unreachable(Server::describeFailure(addresses));
  addresses_ = addresses.list;
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
  const std::string where = HostPort{{{}, address_}, target_.port}.text();
  to_upstream_ = "CONNECT " + where + " HTTP/1.1\r\nHost: " + where + "\r\n\r\n";
  from_upstream_.clear();
  onProxyAnswer();
}

void Connection::onProxyAnswer() {
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
  int error = EHOSTUNREACH;
  grows_ = false;
  const int buffer_bytes = server_.bufferBytes();
  grows_ = buffer_bytes == 0;
  if (!grows_) boundBuffers(client_.get(), buffer_bytes);
  while (next_address_ < addresses_.size()) {
    address_ = addresses_[next_address_++];
    if (upstream_) server_.loop.forget(upstream_.get());
    upstream_ = startConnect(proxy_ ? *proxy_ : Endpoint{address_, target_.port}, buffer_bytes);
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

void Connection::unreachable(std::string_view why) {
  const std::string text = target_.host.text() + ":" + std::to_string(target_.port) + ": " + std::string(why) + "\n";
  const int error = errno;
  server_.reportUnreachable(target_.host.text(), target_.port, why);
  errno = error;
  if (style_ == Style::captured) return close(true);
  if (style_ == Style::socks) {
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
  if (style_ == Style::http) {
    phase_ = Phase::http;
    return pumpHttp();
  }
  if (style_ == Style::tunnel_request) to_client_ += "HTTP/1.1 200 Connection established\r\n\r\n";
  if (style_ == Style::socks) {
    const auto reply = socks::buildReply(socks::Reply::granted);
    to_client_.append(reply.begin(), reply.end());
  }
  phase_ = Phase::first_bytes;
  progress();
}

void Connection::deny(std::string operation, const Decision& decision) {
  denyObject(std::move(operation), target_, decision);
}

void Connection::denyObject(std::string operation, const HostPort& target, const Decision& decision) {
  Request request;
  request.operation = std::move(operation);
  request.host = target.host.text();
  request.port = target.port;
  request.rule = decision.rule;
  request.remedy = decision.remedy;
  request.sent = sent_;
  request.received = received_;
  reported_ = true;
  const std::string text = "caisson: " + request.object() + " is refused: " + decision.rule +
                           (decision.remedy.empty() ? "" : "\nto allow it: " + decision.remedy) + "\n";
  server_.report(std::move(request), decision.range);
  const bool may_answer =
      phase_ == Phase::hello || phase_ == Phase::connecting || phase_ == Phase::asking || phase_ == Phase::socks;
  if (style_ == Style::socks && may_answer) {
    const auto reply = socks::buildReply(socks::Reply::not_allowed);
    to_client_.append(reply.begin(), reply.end());
    return finishAfterFlush();
  }
  if (phase_ == Phase::http || (may_answer && (style_ == Style::http || style_ == Style::tunnel_request))) {
    return answer(403, "Forbidden", text);
  }
  close(true);
}

void Connection::finishAfterFlush() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::finishing;
  dropBroker();
  if (upstream_) {
    server_.loop.forget(upstream_.get());
    upstream_.reset();
  }
  active_ = Clock::now();
  progress();
}

void Connection::reportOpened() {
  Request request;
  request.operation = kOpened;
  request.host = target_.host.text();
  request.port = target_.port;
  request.address = address_.text();
  request.allowed = true;
  request.rule = rule_;
  opened_number_ = server_.reportOpened(std::move(request));
}

void Connection::reportAllowed() {
  if (!has_target_ || reported_ || !upstream_ready_) return;
  reported_ = true;
  const std::uint64_t sent = sent_ + up_.bytes(), received = received_ + down_.bytes();
  Request request;
  request.operation = "connect";
  request.host = target_.host.text();
  request.port = target_.port;
  request.address = address_.text();
  request.allowed = true;
  request.rule = rule_;
  request.sent = sent - std::exchange(reported_sent_, sent);
  request.received = received - std::exchange(reported_received_, received);
  request.milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - connected_).count();
  server_.report(std::move(request));
}

void Connection::close(bool reset) {
  if (phase_ == Phase::closed) return;
  returnTicket();
  server_.resolver->cancel(this);
  reportAllowed();
  countBytes();
  phase_ = Phase::closed;
  if (reset && client_) resetOnClose(client_.get());
  for (sys::Fd* fd : {&client_, &upstream_}) {
    if (*fd) server_.loop.forget(fd->get());
    fd->reset();
  }
  dropBroker();
  up_.release(server_.pipes);
  down_.release(server_.pipes);
  server_.retire(this);
}

bool Connection::readInto(int descriptor, std::string& buffer, bool& ended) {
  char room[16 * 1024];
  while (!ended && buffer.size() < kBufferBytes) {
    const ssize_t got = ::recv(descriptor, room, sizeof(room), 0);
    if (got > 0) {
      buffer.append(room, static_cast<std::size_t>(got));
      if (static_cast<std::size_t>(got) < sizeof(room)) return true;
    } else if (got == 0) {
      ended = true;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

bool Connection::flush(int descriptor, std::string& buffer) {
  std::size_t done = 0;
  bool fine = true;
  while (done < buffer.size()) {
    const ssize_t sent = ::send(descriptor, buffer.data() + done, buffer.size() - done, MSG_NOSIGNAL);
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
    } else if (errno != EINTR) {
      fine = errno == EAGAIN;
      break;
    }
  }
  (descriptor == client_.get() ? received_ : sent_) += done;
  if (done == buffer.size()) {
    std::string().swap(buffer);  // frees the memory of idle connections
  } else {
    buffer.erase(0, done);
  }
  return fine;
}

void Connection::watchAll() {
  if (phase_ == Phase::closed || phase_ == Phase::tunnel || phase_ == Phase::brokered) return;
  std::uint32_t client = to_client_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT);
  std::uint32_t upstream = to_upstream_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT);
  const bool room = from_client_.size() < kBufferBytes && to_upstream_.size() < kBufferBytes;
  const bool recording = phase_ == Phase::recording;
  const bool waiting = phase_ == Phase::connecting || phase_ == Phase::asking || phase_ == Phase::proxying || recording;
  if (!waiting && room && !client_ended_) client |= EPOLLIN;
  if ((phase_ == Phase::first_bytes || phase_ == Phase::http) && to_client_.size() < kBufferBytes && !upstream_ended_) {
    upstream |= EPOLLIN;
  }
  server_.loop.watch(client_.get(), client, this);
  if (upstream_ && upstream_ready_ && !recording) server_.loop.watch(upstream_.get(), upstream, this);
}

void Connection::onEvents(int descriptor, std::uint32_t events) {
  active_ = Clock::now();
  const bool waiting =
      phase_ == Phase::connecting || phase_ == Phase::asking || phase_ == Phase::proxying || phase_ == Phase::recording;
  if (waiting && descriptor == client_.get()) {
    // Errors mean that the client disconnected. It may also be ready for the rest of an earlier response.
    const bool error = (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0;
    if (error || !flush(client_.get(), to_client_)) return close(true);
    return watchAll();
  }
  // The upstream of an earlier request ended or misbehaves: nothing of it may mix with the request that waits.
  if (phase_ == Phase::asking || phase_ == Phase::recording) return close(true);
  if (phase_ == Phase::proxying) return onProxyAnswer();
  if (phase_ == Phase::connecting) {
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      errno = error;
      return next_address_ < addresses_.size() ? connectNext() : unreachable(errnoName(error));
    }
    return proxy_ ? askProxy() : onConnected();
  }
  if (phase_ == Phase::brokered) return onBrokeredEvents(descriptor);
  if ((events & EPOLLERR) != 0 && phase_ != Phase::tunnel) return close(true);
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) (descriptor == client_.get() ? up_ : down_).setReadable();
  progress();
}

void Connection::resume() {
  if (phase_ == Phase::brokered) return pumpBrokered();
  if (phase_ == Phase::http) return pumpHttp();
  pumpTunnel();
}

void Connection::progress() {
  if (phase_ == Phase::tunnel) return pumpTunnel();
  if (phase_ == Phase::http) return pumpHttp();
  if (!to_client_.empty() && !flush(client_.get(), to_client_)) return close(false);
  if (phase_ == Phase::finishing) {
    if (!to_client_.empty()) return watchAll();
    ::shutdown(client_.get(), SHUT_WR);
    from_client_.clear();
    if (!readInto(client_.get(), from_client_, client_ended_) || client_ended_) return close(false);
    from_client_.clear();
    return watchAll();
  }
  if (!readInto(client_.get(), from_client_, client_ended_)) return close(false);
  switch (phase_) {
    case Phase::hello: onHello(); break;
    case Phase::socks: onSocks(); break;
    case Phase::first_bytes: onFirstBytes(); break;
    default: break;
  }
  if (phase_ == Phase::closed) return;
  if (client_ended_ && (phase_ == Phase::hello || phase_ == Phase::socks)) return close(false);
  watchAll();
}

void Connection::tick(Clock::time_point now) {
  if (phase_ == Phase::closed || phase_ == Phase::asking) return;  // the prompting process limits that time
  if (phase_ == Phase::connecting && upstream_ && now - connecting_since_ > kConnectTimeout) {
    errno = ETIMEDOUT;
    return next_address_ < addresses_.size() ? connectNext() : unreachable("ETIMEDOUT");
  }
  if (phase_ == Phase::proxying && now - connecting_since_ > kConnectTimeout) {
    errno = ETIMEDOUT;
    return unreachable("the upstream proxy does not answer");
  }
  if (phase_ == Phase::recording && now - connected_ > kRecordTimeout) return close(true);
  const bool starting = phase_ == Phase::hello || phase_ == Phase::socks;
  if (starting && now - began_ > kStartTimeout) return close(true);
  if (phase_ == Phase::finishing && now - active_ > kFarewellTimeout) return close(false);
  if (now - active_ > std::chrono::seconds(server_.settings.idle_seconds)) return close(true);
  countBytes();
}

void Connection::countBytes() {
  const std::uint64_t sent = sent_ + up_.bytes(), received = received_ + down_.bytes();
  server_.countBytes(sent - counted_sent_, received - counted_received_);
  counted_sent_ = sent;
  counted_received_ = received;
}

void Connection::judgeAgain() {
  if (phase_ == Phase::closed || phase_ == Phase::finishing || !has_target_) return;
  const Decision decision = judge();
  if (phase_ == Phase::asking) {
    if (!decision.allowed && decision.askable) return;
    returnTicket();
    if (decision.allowed) return goToTarget(decision);
  }
  if (!decision.allowed) {
    phase_ = Phase::tunnel;  // reset it without a reply, in any phase
    deny("connect", decision);
  }
}

}  // namespace caisson::egress
