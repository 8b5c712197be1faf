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
  sys::Fd lock;
  sys::Fd listener;  ///< on the host; a port of the sandbox listens in the next one
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
  /// Sets the host's port if none was given.
  Result<void> open(PortOptions& options);
  Result<void> close(const PortOptions& options);
  void closeAll();
  /// Copies of all of them.
  [[nodiscard]] std::vector<KeptPort> kept() const;
  /// Opens one that an earlier supervisor kept.
  void adopt(KeptPort kept);
  /// The sandbox started: inward ports listen inside it, and the plan's ports are opened unless they are open. `inside`
  /// are the listeners that pid 1 made for its host ports.
  Result<void> sandboxStarted(const plan::Plan& plan, std::vector<sys::Fd> inside);
  void sandboxEnded();

 private:
  struct Port {
    PortOptions options;
    sys::Fd lock;  ///< of its file in ports/: shows others that the port is open
    std::unique_ptr<supervise::PortRelay> relay;
  };
  Port& add(const PortOptions& options, sys::Fd lock);
  [[nodiscard]] Port* find(const PortOptions& options);
  Result<Port*> addLocked(const PortOptions& options);
  Result<void> listen(Port& port);
  Result<void> noteOpen(const Port& port);
  [[nodiscard]] bool admit(const Port& port);
  void drop(std::list<Port>::iterator port);

  const sys::RootDir& directory_;
  const Metadata& metadata_;
  sys::EventLoop& loop_;
  MakeSocket make_socket_;
  supervise::PortLog log_;
  std::list<Port> ports_;
};

}  // namespace caisson::session
