// Relays TCP connections from listening sockets, each to a new socket on the loopback of the other side.
//
// One side of every connection belongs to a payload, so nothing here waits for it: connections are limited in number,
// each must reach the other side before a deadline, and all run in the caller's event loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "egress/pipes.h"
#include "egress/relay.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

class PortRelay {
 public:
  /// One connection that ended.
  struct Finished {
    std::uint64_t sent = 0, received = 0;  ///< bytes from and to the side that opened it
    double milliseconds = 0;
    int error = 0;  ///< why the other side could not be reached, or 0
  };
  using SocketReady = std::function<void(sys::Fd)>;

  struct Options {
    std::uint16_t port = 0;  ///< on the other side
    /// Creates a TCP socket of the other side and calls back, now or later; an invalid one: none available.
    std::function<void(int family, SocketReady ready)> make_socket;
    bool try_ipv6 = false;  ///< after a refusal at 127.0.0.1
    /// A connection that carries no byte for so long is ended; zero: no limit.
    std::chrono::milliseconds idle_limit{0};
    std::function<bool()> admit;  ///< called for each new connection; false: it is reset. Null: all are admitted
    std::function<void(const Finished&)> finished;  ///< called once for each admitted connection; may be null
  };

  static constexpr std::size_t kMaxConnections = 128;

  PortRelay(sys::EventLoop& loop, Options options);
  /// Cuts all connections.
  ~PortRelay();
  PortRelay(const PortRelay&) = delete;
  PortRelay& operator=(const PortRelay&) = delete;

  /// Accepts connections from this non-blocking listener from now on.
  void listenAt(sys::Fd listener);
  /// Closes the listeners. Connections continue.
  void stopListening();
  /// The sandbox has exited: closes the listeners and cuts connections that are not established. The others end once
  /// what the sandbox sent is delivered. `sandbox_opened_them`: the sandbox is the side that connects to the listeners.
  void drain(bool sandbox_opened_them);
  [[nodiscard]] const std::vector<sys::Fd>& listeners() const { return listeners_; }
  [[nodiscard]] std::size_t connections() const { return pairs_.size(); }

 private:
  using Clock = sys::EventLoop::Clock;
  struct Pair {
    sys::Fd near, far;             ///< accepted from the listener; connected to the other side
    egress::Flow outward, inward;  ///< near to far; far to near
    Clock::time_point began;
    sys::EventLoop::TimerId timer = 0;  ///< until connected: the deadline; then: the next pump without an event
    bool connected = false;
    Clock::time_point active;                ///< when it last carried a byte
    sys::EventLoop::TimerId idle_timer = 0;  ///< see Options::idle_limit
    int near_events = kUnwatched, far_events = kUnwatched;
  };
  static constexpr int kUnwatched = -1;

  // `id`: a key of pairs_.
  void watchListeners();
  /// A listener is readable: accepts a connection and requests a socket for the other side. Resets one that is over
  /// kMaxConnections or not admitted.
  void accept(int listener);
  /// Requests a socket of the other side; onSocket() continues, or the connection ends if there is none.
  /// `earlier_error`: what is reported then.
  void requestSocket(std::uint64_t id, int family, int earlier_error);
  /// A socket of the other side was created: starts to connect it.
  void onSocket(std::uint64_t id, int family, sys::Fd socket);
  /// Tries IPv6, if that is wanted and 127.0.0.1 refused the connection; else ends it.
  void onConnectFailed(std::uint64_t id, int family, int error);
  /// The other side is connected: stops the deadline and starts to move data. A socket that is connected to itself
  /// counts as refused.
  void onConnected(std::uint64_t id, int family);
  /// A side of a connected pair is ready or was closed: moves data, then watches again or ends the connection.
  void onReady(std::uint64_t id, bool near, short events);
  /// Moves the available data. False: the connection is over and gone.
  bool pump(std::uint64_t id);
  /// Watches both sides for the events that the next pump() needs.
  void watch(std::uint64_t id);
  /// watch() for one side: `near` is the one that was accepted.
  void watchSide(std::uint64_t id, bool near);
  void unwatch(Pair& pair);
  /// Whether everything was delivered: in both directions or, after drain(), from the sandbox.
  [[nodiscard]] bool isOver(const Pair& pair) const;
  /// Pumps after `pause`, also without an event. Does nothing if that is planned already.
  void pumpLater(std::uint64_t id, Clock::duration pause);
  /// Ends the connection if it carried nothing since `Options::idle_limit`, else checks again when it could.
  void checkIdle(std::uint64_t id);
  /// Closes both sides, removes the pair and reports it. Resets the near side if the far side was never connected.
  void finish(std::uint64_t id, int error);

  sys::EventLoop& loop_;
  Options options_;
  std::vector<sys::Fd> listeners_;
  egress::PipePool pipes_;
  std::map<std::uint64_t, Pair> pairs_;
  std::uint64_t last_id_ = 0;
  enum class Drain : std::uint8_t { off, near, far } drain_ = Drain::off;  ///< which side is the exited sandbox
  sys::EventLoop::TimerId pause_timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< for callbacks that come later
};

}  // namespace caisson::supervise
