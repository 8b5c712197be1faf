#include "session/supervisor/ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "audit/log.h"
#include "session/network/ports.h"
#include "session/store/session_paths.h"

namespace caisson::session {
namespace {

constexpr int kPortBacklog = 64;
constexpr std::uint64_t kEachRecorded = 100;  // connections; then every hundredth, to avoid flooding the log

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Starts a connect; its outcome shows later.
sys::Fd connectTo(sys::Fd socket, std::uint16_t port) {
  if (!socket) return socket;
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  const sockaddr_in address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EINPROGRESS) {
    socket.reset();
  }
  return socket;
}

Result<sys::Fd> listenOn(sys::Fd socket, std::uint16_t& port, const char* where) {
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  sockaddr_in address = loopback(port);
  socklen_t size = sizeof(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(socket.get(), kPortBacklog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(sysError(Stage::state, "bind",
                         std::string("127.0.0.1 of the ") + where + ", port " + std::to_string(port), errno,
                         "something listens there already; choose another port"));
  }
  port = ntohs(address.sin_port);
  return socket;
}

sys::Fd hostSocket() { return sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

}  // namespace

Result<void> PortSet::open(PortOptions& options) {
  if (auto made = directory_.makeDirs(kPortDirectory, 0700); !made) return made;
  const std::string file = portFile(options.port, options.inward);
  auto lock = lockFile(directory_, file.c_str(), false);
  if (!lock) {
    return fail(plainError(Stage::usage, "session expose", std::to_string(options.port), "it is open already",
                           "close it first (--close)"));
  }
  Port& port = add(options, std::move(*lock));
  auto listening = port.relay->valid() ? listen(port) : fail(sysError(Stage::state, "epoll_create1", "", errno));
  const std::string text = std::to_string(port.options.host_port) + "\n";
  if (listening &&
      (::ftruncate(port.lock.get(), 0) != 0 || ::pwrite(port.lock.get(), text.data(), text.size(), 0) < 0)) {
    listening = fail(sysError(Stage::state, "write", file, errno));
  }
  if (!listening) {
    const Error error = listening.error();
    drop(std::prev(ports_.end()));
    return fail(error);
  }
  options.host_port = port.options.host_port;
  return {};
}

PortSet::Port& PortSet::add(const PortOptions& options, sys::Fd lock) {
  Port& port = ports_.emplace_back();
  port.options = options;
  port.lock = std::move(lock);
  port.relay = std::make_unique<PortRelay>([this, &port]() -> sys::Fd {
    if (port.options.inward) {
      recordConnection(port);
      return connectTo(hostSocket(), port.options.host_port);
    }
    auto socket = make_socket_();
    return socket ? connectTo(std::move(*socket), port.options.port) : sys::Fd{};
  });
  if (port.relay->valid()) loop_.on(port.relay->descriptor(), POLLIN, [this, &port](short) { turn(port); });
  return port;
}

std::vector<KeptPort> PortSet::kept() const {
  const auto copy = [](int descriptor) { return sys::Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)); };
  std::vector<KeptPort> all;
  for (const Port& port : ports_) {
    KeptPort& one = all.emplace_back();
    one.options = port.options;
    one.lock = copy(port.lock.get());
    if (!port.options.inward) one.listener = copy(port.relay->listener());
  }
  return all;
}

void PortSet::adopt(KeptPort kept) {
  Port& port = add(kept.options, std::move(kept.lock));
  if (!port.options.inward) port.relay->listenAt(std::move(kept.listener));
}

Result<void> PortSet::listen(Port& port) {
  const bool inward = port.options.inward;
  auto socket = inward ? make_socket_() : Result<sys::Fd>(hostSocket());
  if (!socket) return fail(socket.error());
  auto listener =
      listenOn(std::move(*socket), inward ? port.options.port : port.options.host_port, inward ? "session" : "host");
  if (!listener) return fail(listener.error());
  port.relay->listenAt(std::move(*listener));
  return {};
}

void PortSet::turn(Port& port) {
  port.relay->turn(0);
  // Edges are reported once: the rest is pumped again without a new event.
  if (port.relay->pending() && !std::exchange(port.resumes, true)) {
    loop_.at(sys::EventLoop::Clock::now(), [this, number = port.options.port, inward = port.options.inward] {
      for (Port& one : ports_) {
        if (one.options.port != number || one.options.inward != inward) continue;
        one.resumes = false;
        turn(one);
      }
    });
  }
}

Result<void> PortSet::close(const PortOptions& options) {
  for (auto port = ports_.begin(); port != ports_.end(); ++port) {
    if (port->options.port != options.port || port->options.inward != options.inward) continue;
    drop(port);
    return {};
  }
  return fail(plainError(Stage::usage, "session expose", std::to_string(options.port), "it is not open",
                         "`caisson session expose ID` lists the open ports"));
}

void PortSet::drop(std::list<Port>::iterator port) {
  loop_.remove(port->relay->descriptor());
  (void)directory_.remove(portFile(port->options.port, port->options.inward));
  ports_.erase(port);
}

void PortSet::closeAll() {
  while (!ports_.empty()) drop(ports_.begin());
}

void PortSet::followSandbox(bool runs) {
  for (Port& port : ports_) {
    if (!port.options.inward) continue;
    port.relay->listenAt({});
    if (runs) (void)listen(port);
  }
}

void PortSet::recordConnection(Port& port) {
  if (++port.connections > kEachRecorded && port.connections % kEachRecorded != 0) return;
  audit::Log* log = log_();
  if (log == nullptr) return;
  audit::Fields fields;
  fields.text("host", "localhost").number("port", port.options.host_port).text("address", "127.0.0.1");
  fields.text("decision", "allowed").text("rule", "network.host_ports").number("connections", port.connections);
  (void)log->append({audit::EventType::proxy_request, audit::Severity::info, metadata_.id, std::move(fields)});
  log->handOver();
}

}  // namespace caisson::session
