#include "supervise/network/run_ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "supervise/network/port_sockets.h"

namespace caisson::supervise {
namespace {

constexpr auto kDrainTime = std::chrono::seconds(1);
/// Requests to pid 1 without a reply; more means that it does not run at the moment.
constexpr std::size_t kMaxRequested = 64;
constexpr auto kReplyTimeout = std::chrono::seconds(15);

}  // namespace

RunPorts::RunPorts(sys::EventLoop& loop, const plan::Plan& plan, std::string sandbox_id,
                   std::function<audit::Log*()> log, RequestSocket request_socket)
    : loop_(loop),
      plan_(plan),
      log_(std::move(log), std::move(sandbox_id)),
      request_socket_(std::move(request_socket)) {}

RunPorts::Port& RunPorts::add(std::uint16_t number, bool published) {
  Port& port = ports_.emplace_back();
  port.number = number;
  port.published = published;
  PortRelay::Options options;
  options.port = number;
  options.try_ipv6 = published;
  if (published) {
    options.make_socket = [this](int family, PortRelay::SocketReady ready) { requestSocket(family, std::move(ready)); };
  } else {
    options.make_socket = [](int family, const PortRelay::SocketReady& ready) { ready(makeHostSocket(family)); };
    options.idle_limit = plan_.idle_limit;
    options.admit = [this, number] { return admit(number); };
  }
  options.finished = [this, &port](const PortRelay::Finished& finished) {
    bytes_ += finished.sent + finished.received;
    ++connections_;
    port.error = finished.error;
    if (!port.published) log_.closed(port.number, finished);
  };
  port.relay = std::make_unique<PortRelay>(loop_, std::move(options));
  return port;
}

bool RunPorts::admit(std::uint16_t port) {
  std::uint64_t open = 0;
  for (const Port& one : ports_) open += one.published ? 0 : one.relay->connections();
  if (open >= plan_.max_connections) {
    ++refused_;
    log_.refused(port);
    return false;
  }
  if (log_.opened(port)) return true;
  unrecorded_ = true;
  return false;
}

Result<void> RunPorts::bindPublished() {
  for (const std::uint16_t number : plan_.published_ports) {
    std::uint16_t bound = number;
    auto listener = listenAtLoopback(makeHostSocket(AF_INET), bound, "host");
    if (!listener) return fail(listener.error());
    add(number, true).waiting.push_back(std::move(*listener));
  }
  return {};
}

void RunPorts::serveHostPorts(std::span<sys::Fd> listeners, std::size_t each) {
  for (std::size_t at = 0; at < plan_.host_ports.size(); ++at) {
    Port& port = add(plan_.host_ports[at], false);
    for (std::size_t i = at * each; i < (at + 1) * each && i < listeners.size(); ++i) {
      port.relay->listenAt(std::move(listeners[i]));
    }
  }
}

void RunPorts::startPublished() {
  for (Port& port : ports_) {
    for (sys::Fd& listener : std::exchange(port.waiting, {})) port.relay->listenAt(std::move(listener));
  }
}

void RunPorts::requestSocket(int family, PortRelay::SocketReady ready) {
  const auto now = sys::EventLoop::Clock::now();
  while (!requested_.empty() && now - requested_.begin()->second.when > kReplyTimeout) {
    requested_.erase(requested_.begin());  // its connection has reached its own deadline
  }
  const std::uint32_t number = ++last_request_;
  if (requested_.size() >= kMaxRequested || !request_socket_(number, family)) return ready({});
  requested_.emplace(number, Requested{now, std::move(ready)});
}

void RunPorts::onSocket(std::uint32_t number, sys::Fd socket) {
  auto request = requested_.extract(number);
  if (!request.empty()) request.mapped().ready(std::move(socket));
}

void RunPorts::drain() {
  if (ports_.empty()) return;
  for (Port& port : ports_) port.relay->drain(!port.published);
  loop_.at(sys::EventLoop::Clock::now() + kDrainTime, [this] { cut_ = true; });
}

bool RunPorts::busy() const {
  return !cut_ && std::ranges::any_of(ports_, [](const Port& port) { return port.relay->connections() > 0; });
}

void RunPorts::finish(RunResult& result) {
  requested_.clear();
  for (Port& port : ports_) port.relay.reset();
  log_.flush();
  for (const Port& port : ports_) {
    if (port.error == 0) continue;
    const std::string number = std::to_string(port.number);
    const std::string target = port.published ? "the program did not listen on port " + number
                                              : "nothing on this machine listens at 127.0.0.1:" + number;
    const std::string flag = port.published ? "--publish " : "--host-port ";
    result.notices.push_back(flag + number + ": the last connection failed (" + errnoName(port.error) +
                             (port.error == ECONNREFUSED ? "): " + target : ")"));
  }
  ports_.clear();
  result.usage.network_bytes += bytes_;
  result.usage.network_connections += connections_;
  result.usage.network_denied += refused_;
  if (refused_ > 0) {
    Denial denial{"network.max_connections", "ports of the host", "network: connect",
                  "raise network.max_connections in the policy"};
    denial.count = refused_;
    result.denials.push_back(std::move(denial));
  }
  if (unrecorded_) {
    result.warnings.emplace_back(
        "a connection to a port of the host could not be recorded in the audit log, so it was refused");
  }
}

}  // namespace caisson::supervise
