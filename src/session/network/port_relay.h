// Relays TCP connections from one listening socket, each to a new socket that somebody else makes.
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
  /// A socket for the other side that is connected or about to be; invalid: there is none now.
  using Connect = std::function<sys::Fd()>;

  explicit PortRelay(Connect connect);

  [[nodiscard]] bool valid() const { return events_.valid(); }
  /// Takes connections from this one from now on; an invalid one: from none.
  void listenAt(sys::Fd listener);
  /// Readable when there is something to do.
  [[nodiscard]] int descriptor() const { return events_.get(); }
  /// Whether turn() left something that raises no new event.
  [[nodiscard]] bool pending() const;
  [[nodiscard]] bool listening() const { return listener_.valid(); }
  [[nodiscard]] int listener() const { return listener_.get(); }
  /// Does what there is to do, waiting for it at most this long.
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
