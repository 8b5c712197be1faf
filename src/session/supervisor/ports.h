// Ports between a session and the host's loopback, relayed by the session's supervisor.
//
// A socket belongs to the network namespace in which it was created. pid 1 creates sockets on request, so the
// supervisor connects to, or listens on, the sandbox's loopback without entering the namespace.
#pragma once

#include <functional>
#include <list>

#include "audit/log.h"
#include "session/network/port_relay.h"
#include "session/protocol.h"
#include "session/store/metadata.h"
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
  /// A TCP socket of the sandbox's network.
  using MakeSocket = std::function<Result<sys::Fd>()>;

  PortSet(const sys::RootDir& directory, const Metadata& metadata, sys::EventLoop& loop, MakeSocket make_socket,
          std::function<audit::Log*()> log)
      : directory_(directory),
        metadata_(metadata),
        loop_(loop),
        make_socket_(std::move(make_socket)),
        log_(std::move(log)) {}

  [[nodiscard]] bool empty() const { return ports_.empty(); }
  /// Sets the host's port if none was given.
  Result<void> open(PortOptions& options);
  Result<void> close(const PortOptions& options);
  void closeAll();
  /// Copies of all of them.
  [[nodiscard]] std::vector<KeptPort> kept() const;
  /// Opens one that an earlier supervisor kept.
  void adopt(KeptPort kept);
  /// The sandbox started or ended: inward ports listen inside it.
  void followSandbox(bool runs);

 private:
  struct Port {
    PortOptions options;
    sys::Fd lock;  ///< of its file in ports/: shows others that the port is open
    std::unique_ptr<PortRelay> relay;
    std::uint64_t connections = 0;
    bool resumes = false;  ///< a turn is already scheduled
  };
  Port& add(const PortOptions& options, sys::Fd lock);
  Result<void> listen(Port& port);
  void turn(Port& port);
  void recordConnection(Port& port);
  void drop(std::list<Port>::iterator port);

  const sys::RootDir& directory_;
  const Metadata& metadata_;
  sys::EventLoop& loop_;
  MakeSocket make_socket_;
  std::function<audit::Log*()> log_;  ///< null: no audit
  std::list<Port> ports_;
};

}  // namespace caisson::session
