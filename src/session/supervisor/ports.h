// Ports between a session and the host's loopback, relayed by the session's supervisor.
//
// A socket belongs to the network namespace it was made in, whoever holds it. pid 1 makes sockets on request, so the
// supervisor connects to, or listens at, the sandbox's own loopback without entering anything.
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

/// An open port, between two supervisors of its session.
struct KeptPort {
  PortOptions options;
  sys::Fd lock;
  sys::Fd listener;  ///< of the host; a port of the sandbox listens in the next one
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
  /// Fills in the host's port where none was given.
  Result<void> open(PortOptions& options);
  Result<void> close(const PortOptions& options);
  void closeAll();
  /// Copies of all of them.
  [[nodiscard]] std::vector<KeptPort> kept() const;
  /// Opens one that an earlier supervisor kept.
  void adopt(KeptPort kept);
  /// The sandbox was started, or has ended: inward ports listen inside it.
  void followSandbox(bool runs);

 private:
  struct Port {
    PortOptions options;
    sys::Fd lock;  ///< of its file in ports/: others see by it that the port is open
    std::unique_ptr<PortRelay> relay;
    std::uint64_t connections = 0;
    bool resumes = false;  ///< a turn is planned already
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
