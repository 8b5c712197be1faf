// Ports between a session and the host's loopback, relayed by the session's supervisor.
//
// A socket belongs to the network namespace in which it was created. pid 1 creates sockets on request, so the
// supervisor connects to, or listens on, the sandbox's loopback without entering the namespace.
#pragma once

#include <functional>
#include <list>

#include "audit/log.h"
#include "plan/plan.h"
#include "session/protocol.h"
#include "session/store/metadata.h"
#include "supervise/network/port_log.h"
#include "supervise/network/port_relay.h"
#include "sys/event_loop.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// An open port, passed from one supervisor to the next.
struct KeptPort {
  PortOptions options;
  sys::Fd lock;      ///< of the port's file
  sys::Fd listener;  ///< on the host; none for an inward port, whose listener is in the sandbox that ended
};

class PortSet {
 public:
  /// A TCP socket of the sandbox's network, of this family.
  using MakeSocket = std::function<Result<sys::Fd>(int family)>;

  PortSet(const sys::RootDir& directory, const Metadata& metadata, sys::EventLoop& loop, MakeSocket make_socket,
          std::function<audit::Log*()> log)
      : directory_(directory),
        metadata_(metadata),
        loop_(loop),
        make_socket_(std::move(make_socket)),
        log_(std::move(log), metadata.id) {}

  [[nodiscard]] bool empty() const { return ports_.empty(); }
  [[nodiscard]] std::size_t count() const { return ports_.size(); }
  /// Opens a port; host port 0 means any free one, and is set. Does nothing if the same inward port with this host port
  /// is open; an error if another port of this number and direction is.
  Result<void> open(PortOptions& options);
  /// An error if the port is not open.
  Result<void> close(const PortOptions& options);
  /// Closes every port and its connections.
  void closeAll();
  /// Copies of all open ports, for the next supervisor.
  [[nodiscard]] std::vector<KeptPort> kept() const;
  /// Opens a port that an earlier supervisor passed on. An inward port listens from sandboxStarted() on.
  void adopt(KeptPort kept);
  /// The sandbox started: inward ports listen inside it, and the plan's ports are opened unless they are open. `inside`
  /// are the listeners that pid 1 made for its host ports.
  Result<void> sandboxStarted(const plan::Plan& plan, std::vector<sys::Fd> inside);
  /// The sandbox ended: inward ports stop listening but stay open for the next sandbox.
  void sandboxEnded();

 private:
  struct Port {
    PortOptions options;
    sys::Fd lock;  ///< of its file in ports/: shows others that the port is open
    std::unique_ptr<supervise::PortRelay> relay;
  };
  Port& add(const PortOptions& options, sys::Fd lock);
  /// By port and direction; null if it is not open.
  [[nodiscard]] Port* find(const PortOptions& options);
  /// Locks the port's file and adds the port, which does not listen yet. An error if the file is locked: the port is
  /// open.
  Result<Port*> addLocked(const PortOptions& options);
  /// Listens on the host's loopback; for an inward port on the sandbox's. Sets host port 0 to the one that was chosen.
  Result<void> listen(Port& port);
  /// Writes the host's port to the port's lock file, where clients that list ports read it.
  Result<void> writePortFile(const Port& port);
  /// Whether one more connection from the sandbox to a host port is allowed. max_connections limits the sum over all
  /// inward ports; others do not count. Records the connection or its refusal; false if it cannot be recorded.
  [[nodiscard]] bool admit(const Port& port);
  /// Closes the port with its connections and removes its file.
  void drop(std::list<Port>::iterator port);

  const sys::RootDir& directory_;
  const Metadata& metadata_;
  sys::EventLoop& loop_;
  MakeSocket make_socket_;
  supervise::PortLog log_;
  std::list<Port> ports_;
};

}  // namespace caisson::session
