#include "session/network/port_relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace caisson::session {
namespace {

constexpr std::size_t kMaxPairs = 128;
constexpr int kMaxEvents = 64;

/// Whether a pending connect succeeded (0), failed (an errno) or is in progress (EINPROGRESS).
int connectOutcome(int socket) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0) return error;
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &length) == 0 ? 0 : EINPROGRESS;
}

}  // namespace

PortRelay::PortRelay(Connect connect) : connect_(std::move(connect)), events_(::epoll_create1(EPOLL_CLOEXEC)) {}

void PortRelay::watch(int descriptor, void* what) {
  epoll_event event{};
  // Edge-triggered: each flow is pumped until nothing moves.
  event.events = what == nullptr ? EPOLLIN : EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = what;
  ::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event);
}

void PortRelay::listenAt(sys::Fd listener) {
  listener_ = std::move(listener);
  if (listener_) watch(listener_.get(), nullptr);
}

void PortRelay::accept() {
  sys::Fd near(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!near || pairs_.size() >= kMaxPairs) return;  // too many connections
  sys::Fd far = connect_();
  if (!far) return;
  Pair& pair = pairs_.emplace_back();
  pair.near = std::move(near);
  pair.far = std::move(far);
  watch(pair.near.get(), &pair);
  watch(pair.far.get(), &pair);
  pump(pair);
}

void PortRelay::pump(Pair& pair) {
  using State = egress::Flow::State;
  if (pair.connecting) {
    const int outcome = connectOutcome(pair.far.get());
    if (outcome == EINPROGRESS) return;
    pair.connecting = false;
    pair.broken = outcome != 0;
  }
  if (pair.broken) return;
  const State there = pair.outward.pump(pipes_, pair.near.get(), pair.far.get());
  const State back = pair.inward.pump(pipes_, pair.far.get(), pair.near.get());
  pair.more = there == State::more || back == State::more;
  pair.broken = there == State::broken || back == State::broken;
}

bool PortRelay::pending() const {
  return std::any_of(pairs_.begin(), pairs_.end(), [](const Pair& pair) { return pair.more; });
}

void PortRelay::turn(int milliseconds) {
  epoll_event events[kMaxEvents];
  const int count = ::epoll_wait(events_.get(), events, kMaxEvents, pending() ? 0 : milliseconds);
  bool arrived = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      arrived = true;
    } else {
      Pair& pair = *static_cast<Pair*>(events[i].data.ptr);
      pair.outward.setReadable();  // or the other one is: the event does not tell which
      pair.inward.setReadable();
      pump(pair);
    }
  }
  for (Pair& pair : pairs_) {
    if (pair.more) pump(pair);
  }
  pairs_.remove_if([](const Pair& pair) { return pair.broken || (pair.outward.ended() && pair.inward.ended()); });
  if (arrived && listener_) accept();
}

}  // namespace caisson::session
