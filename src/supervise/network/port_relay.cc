#include "supervise/network/port_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "egress/sockets.h"
#include "supervise/network/port_sockets.h"

namespace caisson::supervise {
namespace {

constexpr auto kConnectTimeout = std::chrono::seconds(10);
constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // after running out of descriptors
constexpr auto kStallPause = std::chrono::milliseconds(10);
constexpr short kGone = POLLERR | POLLHUP;

/// Makes the peer see a reset instead of an empty response.
void resetOnClose(int socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

int pendingError(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

}  // namespace

PortRelay::PortRelay(sys::EventLoop& loop, Options options) : loop_(loop), options_(std::move(options)) {}

PortRelay::~PortRelay() {
  stopListening();
  while (!pairs_.empty()) finish(pairs_.begin()->first, 0);
}

void PortRelay::listenAt(sys::Fd listener) {
  if (!listener) return;
  listeners_.push_back(std::move(listener));
  watchListeners();
}

void PortRelay::stopListening() {
  loop_.cancel(pause_timer_);
  pause_timer_ = 0;
  for (const sys::Fd& listener : listeners_) loop_.remove(listener.get());
  listeners_.clear();
}

void PortRelay::watchListeners() {
  for (const sys::Fd& listener : listeners_) {
    loop_.on(listener.get(), POLLIN, [this, number = listener.get()](short) { accept(number); });
  }
}

void PortRelay::accept(int listener) {
  sys::Fd near(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!near) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    // The connection stays in the queue and the listener ready: without a pause this would be a busy loop.
    for (const sys::Fd& one : listeners_) loop_.remove(one.get());
    loop_.cancel(pause_timer_);
    pause_timer_ = loop_.at(Clock::now() + kAcceptPause, [this] {
      pause_timer_ = 0;
      watchListeners();
    });
    return;
  }
  if (pairs_.size() >= kMaxConnections || (options_.admit && !options_.admit())) return resetOnClose(near.get());
  const std::uint64_t id = ++last_id_;
  Pair& pair = pairs_[id];
  pair.near = std::move(near);
  pair.began = Clock::now();
  pair.timer = loop_.at(pair.began + kConnectTimeout, [this, id] {
    pairs_.at(id).timer = 0;
    finish(id, ETIMEDOUT);
  });
  requestSocket(id, AF_INET, ENOBUFS);
}

void PortRelay::requestSocket(std::uint64_t id, int family, int earlier_error) {
  options_.make_socket(family, [this, id, family, earlier_error, alive = std::weak_ptr(alive_)](sys::Fd socket) {
    if (alive.expired() || !pairs_.contains(id)) return;
    socket ? onSocket(id, family, std::move(socket)) : finish(id, earlier_error);
  });
}

void PortRelay::onSocket(std::uint64_t id, int family, sys::Fd socket) {
  Pair& pair = pairs_.at(id);
  if (pair.far || pair.connected) return;
  pair.far = std::move(socket);
  const int error = connectToLoopback(pair.far.get(), family, options_.port);
  if (error == 0) return onConnected(id, family);
  if (error != EINPROGRESS) return onConnectFailed(id, family, error);
  loop_.on(pair.far.get(), POLLOUT, [this, id, family](short) {
    Pair& connecting = pairs_.at(id);
    loop_.remove(connecting.far.get());
    const int outcome = pendingError(connecting.far.get());
    outcome == 0 ? onConnected(id, family) : onConnectFailed(id, family, outcome);
  });
}

void PortRelay::onConnectFailed(std::uint64_t id, int family, int error) {
  // A server may listen at ::1 only, which is what `localhost` means to some programs.
  if (!options_.try_ipv6 || family != AF_INET || error != ECONNREFUSED) return finish(id, error);
  pairs_.at(id).far.reset();
  requestSocket(id, AF_INET6, error);
}

void PortRelay::onConnected(std::uint64_t id, int family) {
  Pair& pair = pairs_.at(id);
  if (egress::connectedToItself(pair.far.get())) {
    resetOnClose(pair.far.get());  // frees the port at once for its real service
    return onConnectFailed(id, family, ECONNREFUSED);
  }
  pair.connected = true;
  pair.active = Clock::now();
  if (options_.idle_limit.count() > 0) {
    pair.idle_timer = loop_.at(pair.active + options_.idle_limit, [this, id] { checkIdle(id); });
  }
  loop_.cancel(pair.timer);
  pair.timer = 0;
  if (pump(id)) watch(id);
}

void PortRelay::onReady(std::uint64_t id, bool near, short events) {
  Pair& pair = pairs_.at(id);
  egress::Flow& from = near ? pair.outward : pair.inward;
  // This side sent end of file before, and now does not receive any more either.
  if ((events & kGone) != 0 && from.ended()) return finish(id, 0);
  const std::uint64_t before = pair.outward.bytes() + pair.inward.bytes();
  if ((events & (POLLIN | kGone)) != 0) from.setReadable();
  const bool readable = (events & POLLIN) != 0 && from.wantsRead();
  if (!pump(id)) return;
  const bool moved = pair.outward.bytes() + pair.inward.bytes() != before;
  if (!moved && readable && from.wantsRead() && !from.ended()) {
    // splice(2) does not pass TCP urgent data: the socket would stay readable for ever.
    return finish(id, 0);
  }
  // Ready to write, but without memory for it.
  if (!moved && (events & POLLOUT) != 0 && (pair.outward.wantsWrite() || pair.inward.wantsWrite())) {
    unwatch(pair);
    return pumpLater(id, kStallPause);
  }
  watch(id);
}

void PortRelay::checkIdle(std::uint64_t id) {
  Pair& pair = pairs_.at(id);
  pair.idle_timer = 0;
  const auto due = pair.active + options_.idle_limit;
  if (Clock::now() < due) {
    pair.idle_timer = loop_.at(due, [this, id] { checkIdle(id); });
    return;
  }
  resetOnClose(pair.near.get());
  finish(id, 0);
}

bool PortRelay::pump(std::uint64_t id) {
  using State = egress::Flow::State;
  Pair& pair = pairs_.at(id);
  const std::uint64_t before = pair.outward.bytes() + pair.inward.bytes();
  const State there = pair.outward.pump(pipes_, pair.near.get(), pair.far.get());
  const State back = pair.inward.pump(pipes_, pair.far.get(), pair.near.get());
  if (pair.outward.bytes() + pair.inward.bytes() != before) pair.active = Clock::now();
  if (there == State::broken || back == State::broken || isOver(pair)) {
    finish(id, 0);
    return false;
  }
  if (there == State::more || back == State::more) pumpLater(id, Clock::duration::zero());
  return true;
}

bool PortRelay::isOver(const Pair& pair) const {
  if (drain_ == Drain::near) return pair.outward.ended();
  if (drain_ == Drain::far) return pair.inward.ended();
  return pair.outward.ended() && pair.inward.ended();
}

void PortRelay::drain(bool sandbox_opened_them) {
  stopListening();
  drain_ = sandbox_opened_them ? Drain::near : Drain::far;
  std::vector<std::uint64_t> over;
  for (const auto& [id, pair] : pairs_) {
    if (!pair.connected || isOver(pair)) over.push_back(id);
  }
  for (const std::uint64_t id : over) finish(id, 0);
}

void PortRelay::pumpLater(std::uint64_t id, Clock::duration pause) {
  Pair& pair = pairs_.at(id);
  if (pair.timer != 0) return;
  pair.timer = loop_.at(Clock::now() + pause, [this, id] {
    pairs_.at(id).timer = 0;
    if (pump(id)) watch(id);
  });
}

void PortRelay::watch(std::uint64_t id) {
  watchSide(id, true);
  watchSide(id, false);
}

void PortRelay::watchSide(std::uint64_t id, bool near) {
  Pair& pair = pairs_.at(id);
  const int side = near ? pair.near.get() : pair.far.get();
  int& watched = near ? pair.near_events : pair.far_events;
  const egress::Flow& from = near ? pair.outward : pair.inward;
  const egress::Flow& to = near ? pair.inward : pair.outward;
  int events = (from.wantsRead() ? POLLIN : 0) | (to.wantsWrite() ? POLLOUT : 0);
  // poll reports a closed socket whatever is waited for. While its last bytes wait for the other side, that would be a
  // busy loop.
  if (events == 0 && !from.ended()) events = kUnwatched;
  if (std::exchange(watched, events) == events) return;
  if (events == kUnwatched) return loop_.remove(side);
  loop_.on(side, static_cast<short>(events), [this, id, near](short ready) { onReady(id, near, ready); });
}

void PortRelay::unwatch(Pair& pair) {
  for (const sys::Fd* side : {&pair.near, &pair.far}) {
    if (*side) loop_.remove(side->get());
  }
  pair.near_events = pair.far_events = kUnwatched;
}

void PortRelay::finish(std::uint64_t id, int error) {
  auto node = pairs_.extract(id);
  if (node.empty()) return;
  Pair& pair = node.mapped();
  loop_.cancel(pair.timer);
  loop_.cancel(pair.idle_timer);
  unwatch(pair);
  if (!pair.connected) resetOnClose(pair.near.get());
  if (!options_.finished) return;
  const std::chrono::duration<double, std::milli> taken = Clock::now() - pair.began;
  options_.finished({pair.outward.bytes(), pair.inward.bytes(), taken.count(), error});
}

}  // namespace caisson::supervise
