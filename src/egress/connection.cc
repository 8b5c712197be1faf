#include "egress/connection.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "egress/socks.h"

namespace caisson::egress {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(30);
constexpr auto kRecordTimeout = std::chrono::seconds(30);  // covers a busy audit log, or a full disk being cleaned up
constexpr auto kFarewellTimeout = std::chrono::seconds(2);

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

void Connection::deny(std::string operation, const Decision& decision) {
  denyObject(std::move(operation), target_.place(), decision);
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
  if (style_ == Way::socks && may_answer) {
    const auto reply = socks::buildReply(socks::Reply::not_allowed);
    to_client_.append(reply.begin(), reply.end());
    return finishAfterFlush();
  }
  if (phase_ == Phase::http || (may_answer && (style_ == Way::http || style_ == Way::tunnel_request))) {
    return answer(403, "Forbidden", text);
  }
  close(true);
}

void Connection::finishAfterFlush() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::finishing;
  dropBroker();
  dropUpstream();
  active_ = Clock::now();
  progress();
}

void Connection::reportOpened() {
  Request request;
  request.operation = kOpened;
  request.host = target_.host().text();
  request.port = target_.port();
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
  request.host = target_.host().text();
  request.port = target_.port();
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
  dropUpstream();
  if (client_) server_.loop.forget(client_.get());
  client_.reset();
  dropBroker();
  up_.release(server_.pipes);
  down_.release(server_.pipes);
  server_.retire(this);
}

bool Connection::readInto(int descriptor, std::string& buffer, bool& ended) {
  char room[16 * 1024];
  while (!ended && buffer.size() < kBufferBytes) {
    const std::size_t most = std::min<std::uint64_t>(sizeof(room), server_.allowance());
    if (most == 0) return true;
    const ssize_t got = ::recv(descriptor, room, most, 0);
    if (got > 0) {
      buffer.append(room, static_cast<std::size_t>(got));
      const bool from_host = descriptor == upstream_.get();
      host_spoke_ = host_spoke_ || from_host;
      (from_host ? read_received_ : read_sent_) += static_cast<std::uint64_t>(got);
      countBytes();
      if (static_cast<std::size_t>(got) < sizeof(room)) return true;
    } else if (got == 0) {
      ended = true;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

bool Connection::denyOverLimit() {
  if (!server_.overByteLimit()) return false;
  has_target_ ? deny("connect", {false, "network.max_bytes is used up", "raise network.max_bytes"}) : close(true);
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
  if (waiting && !hangup_seen_ && !client_ended_) client |= EPOLLRDHUP;
  const bool reads = phase_ == Phase::http || (phase_ == Phase::first_bytes && !firstBytesDecide());
  if (reads && to_client_.size() < kBufferBytes && !upstream_ended_) {
    upstream |= EPOLLIN;
  }
  if (phase_ == Phase::first_bytes && !reads) upstream |= EPOLLRDHUP;
  server_.loop.watch(client_.get(), client, this);
  if (upstream_ && upstream_ready_ && !recording) server_.loop.watch(upstream_.get(), upstream, this);
}

void Connection::onEvents(int descriptor, std::uint32_t events) {
  active_ = Clock::now();
  const bool waiting =
      phase_ == Phase::connecting || phase_ == Phase::asking || phase_ == Phase::proxying || phase_ == Phase::recording;
  if (waiting && descriptor == client_.get()) {
    // Errors mean that the client disconnected. It may also be ready for the rest of an earlier response.
    const bool error = (events & ~static_cast<std::uint32_t>(EPOLLOUT | EPOLLRDHUP)) != 0;
    if (error || !flush(client_.get(), to_client_)) return close(true);
    if ((events & EPOLLRDHUP) != 0) {  // it may wait for its response, unless it has sent nothing that gets one
      hangup_seen_ = true;
      if (!readInto(client_.get(), from_client_, client_ended_) || abandoned()) return close(true);
    }
    return watchAll();
  }
  // The upstream of an earlier request ended or misbehaves: nothing of it may mix with the request that waits.
  if (phase_ == Phase::asking || phase_ == Phase::recording) return close(true);
  if (phase_ == Phase::proxying) return onProxyAnswer();
  if (phase_ == Phase::connecting) {
    int error = 0;
    socklen_t size = sizeof(error);
    ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error == 0 && connectedToItself(descriptor)) {
      resetOnClose(descriptor);  // frees the port at once
      error = ECONNREFUSED;
    }
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
  // The host closed before the client said for which host its bytes are: what the host sent is for no one.
  const bool host_closed = descriptor == upstream_.get() && (events & EPOLLRDHUP) != 0;
  if (host_closed && phase_ == Phase::first_bytes && firstBytesDecide()) close(true);
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
    if (server_.overByteLimit()) return close(false);  // nothing more may be read, and unread bytes stay ready
    from_client_.clear();
    if (!readInto(client_.get(), from_client_, client_ended_) || client_ended_) return close(false);
    from_client_.clear();
    return watchAll();
  }
  if (denyOverLimit()) return;
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
  if (phase_ == Phase::connecting || phase_ == Phase::proxying) return tickTarget(now);
  if (phase_ == Phase::recording && now - connected_ > kRecordTimeout) return close(true);
  const bool starting = phase_ == Phase::hello || phase_ == Phase::socks;
  if (starting && now - began_ > kStartTimeout) return close(true);
  if (phase_ == Phase::finishing && now - active_ > kFarewellTimeout) return close(false);
  if (now - active_ > std::chrono::seconds(server_.settings.idle_seconds)) return close(true);
  countBytes();
}

void Connection::countBytes() {
  const std::uint64_t sent = read_sent_ + up_.bytesRead(), received = read_received_ + down_.bytesRead();
  server_.countBytes(sent - counted_sent_, received - counted_received_);
  counted_sent_ = sent;
  counted_received_ = received;
}

void Connection::judgeAgain() {
  if (phase_ == Phase::closed || phase_ == Phase::finishing || !has_target_) return;
  const Decision decision = judgeConnected();
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
