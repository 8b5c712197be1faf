// Connections to hosts with a credential: relays bytes between client and broker, and between broker and host.
#include <sys/epoll.h>

#include "egress/broker_link.h"
#include "egress/connection.h"

namespace caisson::egress {

void Connection::beginBrokered() {
  auto ends = server_.broker->handOver(target_.place());
  // Never continue without the broker: the request would reach the host without its credential.
  if (!ends) return deny("connect", {false, std::string(ends.error()), {}});
  broker_client_ = std::move(ends->client);
  broker_upstream_ = std::move(ends->upstream);
  // The checked hello is the first thing that the broker reads. It fits into an empty socket buffer.
  const ssize_t sent = ::send(broker_client_.get(), from_client_.data(), from_client_.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(from_client_.size())) return close(true);
  std::string().swap(from_client_);
  phase_ = Phase::brokered;
  constexpr std::uint32_t kAll = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  for (const sys::Fd* fd : {&client_, &upstream_, &broker_client_, &broker_upstream_}) {
    server_.loop.watch(fd->get(), kAll, this);
  }
  pumpBrokered();
}

void Connection::onBrokeredEvents(int descriptor) {
  Flow& from = descriptor == client_.get()          ? to_broker_
               : descriptor == broker_client_.get() ? from_broker_
               : descriptor == upstream_.get()      ? down_
                                                    : up_;
  from.setReadable();
  pumpBrokered();
}

void Connection::pumpBrokered() {
  if (phase_ != Phase::brokered) return;
  countBytes();
  if (denyOverLimit()) return;
  const bool more = pumpUpstreamSide();
  countBytes();  // now, so that other connections see in this turn what is left
  if (denyOverLimit()) return;
  if (!to_client_.empty() && !flush(client_.get(), to_client_)) return close(true);
  Flow::State down = Flow::State::waiting;
  if (to_client_.empty()) down = from_broker_.pump(server_.pipes, broker_client_.get(), client_.get());
  // The broker closed the client's side: only the broker knows when a response is complete.
  if (down == Flow::State::ended) return finishAfterFlush();
  const Flow::State up = to_broker_.pump(server_.pipes, client_.get(), broker_client_.get());
  if (down == Flow::State::broken) return close(true);
  if (up == Flow::State::broken) {  // the broker no longer reads; it may have sent a reason
    from_broker_.setReadable();
    if (from_broker_.pump(server_.pipes, broker_client_.get(), client_.get()) == Flow::State::ended) {
      return finishAfterFlush();
    }
    return close(true);
  }
  if (more || up == Flow::State::more || down == Flow::State::more) server_.again(this);
}

bool Connection::pumpUpstreamSide() {
  if (!upstream_) return false;
  const Flow::State up = up_.pump(server_.pipes, broker_upstream_.get(), upstream_.get(), server_.allowance());
  countBytes();
  const Flow::State down = down_.pump(server_.pipes, upstream_.get(), broker_upstream_.get(), server_.allowance());
  if (down_.ended() && !up_.ended()) host_ended_first_ = true;
  if (up == Flow::State::broken || down == Flow::State::broken) {
    dropUpstream();
    server_.loop.forget(broker_upstream_.get());
    broker_upstream_.reset();
    return false;
  }
  return up == Flow::State::more || down == Flow::State::more;
}

void Connection::dropBroker() {
  for (sys::Fd* fd : {&broker_client_, &broker_upstream_}) {
    if (*fd) server_.loop.forget(fd->get());
    fd->reset();
  }
  to_broker_.release(server_.pipes);
  from_broker_.release(server_.pipes);
}

}  // namespace caisson::egress
