// Ports between the sandbox of one run and the host's loopback.
//
// A socket belongs to the network namespace in which it was created. Listeners for ports of the host are made inside by
// pid 1 before the payload starts; sockets that reach a published port are made by pid 1 on request. No process enters
// the sandbox's namespace, and the payload holds none of these descriptors.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/log.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "supervise/network/port_log.h"
#include "supervise/network/port_relay.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class RunPorts {
 public:
  /// Requests a socket from pid 1, whose reply goes to onSocket(). False: pid 1 can't be reached.
  using RequestSocket = std::function<bool(std::uint32_t number, int family)>;

  RunPorts(sys::EventLoop& loop, const plan::Plan& plan, std::string sandbox_id, std::function<audit::Log*()> log,
           RequestSocket request_socket);

  /// Binds the published ports on the host. Call it before the sandbox is started.
  Result<void> bindPublished();
  /// Serves the plan's host ports with the listeners that pid 1 sent, `each` for every port.
  void serveHostPorts(std::span<sys::Fd> listeners, std::size_t each);
  /// Accepts connections to published ports. Call it once pid 1 answers requests.
  void startPublished();
  /// pid 1 answered the request `number`; an invalid socket means that it could not create one.
  void onSocket(std::uint32_t number, sys::Fd socket);

  /// The sandbox has exited: connections that still carry data of it get a second to deliver it.
  void drain();
  /// After drain(): whether connections still deliver data.
  [[nodiscard]] bool busy() const;
  /// Cuts everything and adds notices, denials, warnings and usage to the result.
  void finish(RunResult& result);

 private:
  struct Port {
    std::uint16_t number = 0;
    bool published = false;
    std::vector<sys::Fd> waiting;  ///< bound, not served yet
    std::unique_ptr<PortRelay> relay;
    int error = 0;  ///< of the last connection that did not reach the other side
  };
  /// Adds a port with its relay, which does not listen yet.
  Port& add(std::uint16_t number, bool published);
  /// Whether one more connection to a host port is allowed; records it or its refusal. The policy's limit is for all
  /// host ports together.
  [[nodiscard]] bool admit(std::uint16_t port);
  /// Requests a socket of the sandbox from pid 1; onSocket() then calls `ready`. Calls it without a socket at once if
  /// too many requests wait or it cannot be sent.
  void requestSocket(int family, PortRelay::SocketReady ready);

  sys::EventLoop& loop_;
  const plan::Plan& plan_;
  PortLog log_;
  RequestSocket request_socket_;
  std::list<Port> ports_;
  struct Requested {
    sys::EventLoop::Clock::time_point when;
    PortRelay::SocketReady ready;
  };
  std::map<std::uint32_t, Requested> requested_;  ///< by number, so oldest first
  std::uint32_t last_request_ = 0;
  std::uint64_t bytes_ = 0, connections_ = 0, refused_ = 0;
  bool unrecorded_ = false;
  bool cut_ = false;
};

}  // namespace caisson::supervise
