#include "session/supervisor/ports.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "plan/network.h"
#include "session/network/ports.h"
#include "session/store/session_paths.h"
#include "supervise/network/port_sockets.h"

namespace caisson::session {

using supervise::PortRelay;

PortSet::Port* PortSet::find(const PortOptions& options) {
  for (Port& port : ports_) {
    if (port.options.port == options.port && port.options.inward == options.inward) return &port;
  }
  return nullptr;
}

Result<PortSet::Port*> PortSet::addLocked(const PortOptions& options) {
  if (auto made = directory_.makeDirs(kPortDirectory, 0700); !made) return fail(made.error());
  const std::string file = portFile(options.port, options.inward);
  if (find(options) == nullptr) {
    if (auto lock = lockFileWithin(directory_, file.c_str(), kUntilAskersAreGone)) {
      return &add(options, std::move(*lock));
    }
  }
  return fail(plainError(Stage::usage, "session expose", std::to_string(options.port), "it is open already",
                         "close it first (--close)"));
}

Result<void> PortSet::writePortFile(const Port& port) {
  const std::string text = std::to_string(port.options.host_port) + "\n";
  if (::ftruncate(port.lock.get(), 0) != 0 || ::pwrite(port.lock.get(), text.data(), text.size(), 0) < 0) {
    return fail(sysError(Stage::state, "write", portFile(port.options.port, port.options.inward), errno));
  }
  return {};
}

Result<void> PortSet::open(PortOptions& options) {
  if (const Port* same = find(options);
      same != nullptr && options.inward && same->options.host_port == options.host_port) {
    return {};  // the policy opened it
  }
  auto port = addLocked(options);
  if (!port) return fail(port.error());
  auto listening = listen(**port);
  if (listening) listening = writePortFile(**port);
  if (!listening) {
    drop(std::prev(ports_.end()));
    return listening;
  }
  options.host_port = (*port)->options.host_port;
  return {};
}

bool PortSet::admit(const Port& port) {
  std::uint64_t open = 0;
  for (const Port& one : ports_) open += one.options.inward ? one.relay->connections() : 0;
  if (open < metadata_.policy.network.max_connections) return log_.opened(port.options.host_port);
  log_.refused(port.options.host_port);
  return false;
}

PortSet::Port& PortSet::add(const PortOptions& options, sys::Fd lock) {
  Port& port = ports_.emplace_back();
  port.options = options;
  port.lock = std::move(lock);
  PortRelay::Options relay;
  if (options.inward) {
    relay.port = options.host_port;
    relay.make_socket = [](int family, const PortRelay::SocketReady& ready) {
      ready(supervise::makeHostSocket(family));
    };
    relay.idle_limit = plan::idleLimit(metadata_.policy.network);
    relay.admit = [this, &port] { return admit(port); };
    relay.finished = [this, &port](const PortRelay::Finished& done) { log_.closed(port.options.host_port, done); };
  } else {
    relay.port = options.port;
    relay.try_ipv6 = true;
    relay.make_socket = [this](int family, const PortRelay::SocketReady& ready) {
      auto socket = make_socket_(family);
      ready(socket ? std::move(*socket) : sys::Fd{});
    };
  }
  port.relay = std::make_unique<PortRelay>(loop_, std::move(relay));
  return port;
}

std::vector<KeptPort> PortSet::kept() const {
  const auto copy = [](int descriptor) { return sys::Fd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3)); };
  std::vector<KeptPort> all;
  for (const Port& port : ports_) {
    KeptPort& one = all.emplace_back();
    one.options = port.options;
    one.lock = copy(port.lock.get());
    if (!port.options.inward && !port.relay->listeners().empty()) {
      one.listener = copy(port.relay->listeners().front().get());
    }
  }
  return all;
}

void PortSet::adopt(KeptPort kept) {
  Port& port = add(kept.options, std::move(kept.lock));
  if (!port.options.inward) port.relay->listenAt(std::move(kept.listener));
}

Result<void> PortSet::listen(Port& port) {
  const bool inward = port.options.inward;
  auto socket = inward ? make_socket_(AF_INET) : Result<sys::Fd>(supervise::makeHostSocket(AF_INET));
  if (!socket) return fail(socket.error());
  auto listener = supervise::listenAtLoopback(std::move(*socket), inward ? port.options.port : port.options.host_port,
                                              inward ? "session" : "host");
  if (!listener) return fail(listener.error());
  port.relay->listenAt(std::move(*listener));
  return {};
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
  (void)directory_.remove(portFile(port->options.port, port->options.inward));
  port->relay.reset();
  ports_.erase(port);
}

void PortSet::closeAll() {
  while (!ports_.empty()) drop(ports_.begin());
  log_.flush();
}

Result<void> PortSet::sandboxStarted(const plan::Plan& plan, std::vector<sys::Fd> inside) {
  for (const std::uint16_t number : plan.published_ports) {
    PortOptions options{number, number, false};
    if (find(options) != nullptr) continue;
    if (auto opened = open(options); !opened) return opened;
  }
  const std::size_t each = plan.host_ports.empty() ? 0 : inside.size() / plan.host_ports.size();
  for (std::size_t at = 0; at < plan.host_ports.size(); ++at) {
    const PortOptions options{plan.host_ports[at], plan.host_ports[at], true};
    Port* port = find(options);
    if (port == nullptr) {
      auto added = addLocked(options);
      if (!added) return fail(added.error());
      port = *added;
      if (auto noted = writePortFile(*port); !noted) return noted;
    }
    port->relay->stopListening();
    for (std::size_t i = at * each; i < (at + 1) * each; ++i) port->relay->listenAt(std::move(inside[i]));
  }
  for (Port& port : ports_) {
    if (port.options.inward && port.relay->listeners().empty()) (void)listen(port);
  }
  return {};
}

void PortSet::sandboxEnded() {
  for (Port& port : ports_) {
    if (port.options.inward) port.relay->stopListening();
  }
  log_.flush();
}

}  // namespace caisson::session
