// Relays TCP connections from one listening socket, each to a new socket from a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <list>

#include "egress/pipes.h"
#include "egress/relay.h"
#include "sys/fd.h"

namespace caisson::session {

class PortRelay {
 public:
  /// Returns a socket for the other side, connected or connecting; invalid: none available.
  using Connect = std::function<sys::Fd()>;

  explicit PortRelay(Connect connect);

  [[nodiscard]] bool valid() const { return events_.valid(); }
  /// Accepts connections from this listener from now on; an invalid one: from none.
  void listenAt(sys::Fd listener);
  /// Readable when turn() has work.
  [[nodiscard]] int descriptor() const { return events_.get(); }
  /// Whether turn() left work that raises no new event.
  [[nodiscard]] bool pending() const;
  [[nodiscard]] bool listening() const { return listener_.valid(); }
  [[nodiscard]] int listener() const { return listener_.get(); }
  /// Processes events, waiting at most this long.
  void turn(int milliseconds);

 private:
  struct Pair {
    sys::Fd near, far;
    egress::Flow outward, inward;
    bool connecting = true, broken = false, more = false;
  };
  void accept();
  void watch(int descriptor, void* what);
  void pump(Pair& pair);

  Connect connect_;
  sys::Fd events_, listener_;
  egress::PipePool pipes_;
  std::list<Pair> pairs_;
};

}  // namespace caisson::session
