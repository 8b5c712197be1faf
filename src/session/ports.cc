#include "session/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "audit/log.h"
#include "session/attendant.h"
#include "session/handle.h"
#include "session/port_relay.h"

namespace caisson::session {
namespace {

constexpr const char* kPorts = "ports";
constexpr int kStartMs = 10'000, kTurnMs = 500, kBacklog = 64;
constexpr std::uint16_t kFirstUnprivileged = 1024;
constexpr std::uint64_t kEachRecorded = 100;  // connections; then every hundredth, so that nobody can flood the log

std::string fileOf(std::uint16_t port, bool inward) {
  return std::string(kPorts) + (inward ? "/in-" : "/out-") + std::to_string(port);
}

bool readNumber(std::string_view text, std::uint16_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Whether a list of ports and ranges ("8000", "8000-8010") has this one.
bool lists(const std::vector<std::string>& entries, std::uint16_t port) {
  for (const std::string& entry : entries) {
    const std::size_t dash = entry.find('-');
    std::uint16_t first = 0, last = 0;
    if (!readNumber(std::string_view(entry).substr(0, dash), first)) continue;
    last = first;
    if (dash != std::string::npos && !readNumber(std::string_view(entry).substr(dash + 1), last)) continue;
    if (port >= first && port <= last) return true;
  }
  return false;
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Begins to connect; what comes of it shows later.
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
      ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(sysError(Stage::state, "bind",
                         std::string("127.0.0.1 of the ") + where + ", port " + std::to_string(port), errno,
                         "something listens there already; choose another port"));
  }
  port = ntohs(address.sin_port);
  return socket;
}

/// A TCP socket of the sandbox's own network, if the sandbox is up.
Result<sys::Fd> insideSocket(const Connection& connection, const std::string& id) {
  Request ask;
  ask.ask = Ask::socket;
  ask.signal = AF_INET;
  auto answer = connection.ask(ask, "session expose", id);
  if (!answer) return fail(answer.error());
  return std::move(answer->descriptor);
}

sys::Fd hostSocket() { return sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

class Attendant {
 public:
  Attendant(Store& store, Store::Found found, OpenPort wish)
      : store_(store),
        found_(std::move(found)),
        port_(wish),
        relay_([this] { return port_.inward ? connectHost() : connectInside(); }) {}

  Result<std::uint16_t> open() {
    if (!relay_.valid()) return fail(sysError(Stage::state, "epoll_create1", "", errno));
    if (auto made = found_.directory.makeDirs(kPorts, 0700); !made) return fail(made.error());
    auto lock = lockFile(found_.directory, fileOf(port_.port, port_.inward).c_str(), false);
    if (!lock) {
      return fail(plainError(Stage::usage, "session expose", std::to_string(port_.port), "it is open already",
                             "close it first (--close)"));
    }
    lock_ = std::move(*lock);
    auto listener = port_.inward ? listenInside() : listenOn(hostSocket(), port_.host_port, "host");
    if (!listener) {
      (void)found_.directory.remove(fileOf(port_.port, port_.inward));
      return fail(listener.error());
    }
    relay_.listenAt(std::move(*listener));
    const std::string text = std::to_string(port_.host_port) + "\n";
    if (::ftruncate(lock_.get(), 0) != 0 || ::write(lock_.get(), text.data(), text.size()) < 0) {
      return fail(sysError(Stage::state, "write", kPorts, errno));
    }
    return port_.host_port;
  }

  void run() {
    while (wanted()) {
      if (port_.inward) followSandbox();
      relay_.turn(kTurnMs);
    }
  }

 private:
  /// The file is taken away by who closes the port; the directory goes with the session.
  [[nodiscard]] bool wanted() const {
    struct stat held;
    return ::fstat(lock_.get(), &held) == 0 && held.st_nlink > 0 &&
           isCurrent(store_.place(), found_.metadata.id, found_.directory);
  }
  sys::Fd connectInside() {
    auto opened = Connection::open(found_.directory);
    if (!opened || !*opened) return {};
    auto socket = insideSocket(**opened, found_.metadata.id);
    return socket ? connectTo(std::move(*socket), port_.port) : sys::Fd{};
  }
  sys::Fd connectHost() {
    record();
    return connectTo(hostSocket(), port_.host_port);
  }
  Result<sys::Fd> listenInside() {
    auto opened = Connection::open(found_.directory);
    if (!opened) return fail(opened.error());
    if (!*opened) return fail(goneError("session expose", found_.metadata.id));
    auto socket = insideSocket(**opened, found_.metadata.id);
    if (!socket) return fail(socket.error());
    inside_ = std::move(**opened);
    return listenOn(std::move(*socket), port_.port, "session");
  }
  /// A checkpoint or a restore ends the sandbox, and with it the socket that listens in there: the next one gets a new
  /// one.
  void followSandbox() {
    if (inside_) {
      bool closed = false;
      (void)inside_->receive(false, closed);
      if (!closed) return;
      inside_.reset();
      relay_.listenAt({});
    }
    if (auto again = listenInside()) relay_.listenAt(std::move(*again));
  }
  void record() {
    if (++connections_ > kEachRecorded && connections_ % kEachRecorded != 0) return;
    if (!found_.metadata.policy.audit.enabled) return;
    auto log = audit::Log::open();
    if (!log) return;
    audit::Fields fields;
    fields.text("host", "localhost").number("port", port_.host_port).text("address", "127.0.0.1");
    fields.text("decision", "allowed").text("rule", "network.host_ports").number("connections", connections_);
    const audit::Event event{audit::EventType::proxy_request, audit::Severity::info, found_.metadata.id,
                             std::move(fields)};
    (void)log->append({&event, 1});
    log->handOver();
  }

  Store& store_;
  Store::Found found_;
  OpenPort port_;
  sys::Fd lock_;
  std::optional<Connection> inside_;
  PortRelay relay_;
  std::uint64_t connections_ = 0;
};

void tell(int descriptor, const std::string& line) {
  (void)!::write(descriptor, line.data(), line.size());
  (void)!::write(descriptor, "\n", 1);
  ::close(descriptor);
}

}  // namespace

int keepPortOpen(Store& store, std::span<char* const> words, int say) {
  OpenPort wish;
  if (words.size() != 4 || !readNumber(words[2], wish.port) || !readNumber(words[3], wish.host_port)) return 125;
  wish.inward = std::string_view(words[1]) == "in";
  auto found = store.find("session expose", words[0]);
  if (!found) {
    tell(say, "failed " + found.error().message());
    return 1;
  }
  Attendant attendant(store, std::move(*found), wish);
  const auto opened = attendant.open();
  if (!opened) {
    tell(say, "failed " + opened.error().message());
    return 1;
  }
  tell(say, "open " + std::to_string(*opened));
  attendant.run();
  return 0;
}

Result<OpenPort> Handle::openPort(std::uint16_t port, std::uint16_t host_port, bool inward) {
  const policy::Network& network = metadata_.policy.network;
  const std::string text = std::to_string(port);
  if (port == 0 || (inward && port < kFirstUnprivileged)) {
    return fail(plainError(Stage::usage, "session expose", text, "not a usable port",
                           inward ? "ports below 1024 cannot be opened inside" : "give a port from 1 to 65535"));
  }
  if (inward && host_port == 0) host_port = port;
  const char* key = inward ? "network.host_ports" : "network.exposed_ports";
  if (!lists(inward ? network.host_ports : network.exposed_ports, inward ? host_port : port)) {
    return fail(plainError(Stage::policy, "session expose", inward ? std::to_string(host_port) : text,
                           std::string("the session's policy does not list it in ") + key,
                           std::string("make the session with a policy that does: ") + key + " = [\"" + text + "\"]"));
  }
  if (inward) {
    if (auto connection = connect(); !connection) return fail(connection.error());
  }
  if (auto noted = note(inward ? "host port granted" : "port exposed", text); !noted) return fail(noted.error());
  auto attendant =
      startAttendant(store_->place(), {"port", id(), inward ? "in" : "out", text, std::to_string(host_port)});
  if (!attendant) return fail(attendant.error());
  const std::string line = awaitLine(*attendant, kStartMs);
  OpenPort opened{port, 0, inward};
  if (line.starts_with("open ") && readNumber(std::string_view(line).substr(5), opened.host_port)) return opened;
  return fail(plainError(Stage::state, "session expose", text,
                         line.starts_with("failed ") ? line.substr(7) : "the process that keeps it open did not start",
                         line.empty() ? "is the caisson program installed?" : ""));
}

Result<std::vector<OpenPort>> Handle::openPorts() {
  std::vector<OpenPort> ports;
  auto entries = directory_.list(kPorts);
  if (!entries && entries.error().sys_errno == ENOENT) return ports;
  if (!entries) return fail(entries.error());
  for (const sys::DirectoryEntry& entry : *entries) {
    OpenPort one;
    one.inward = entry.name.starts_with("in-");
    if (!readNumber(std::string_view(entry.name).substr(one.inward ? 3 : 4), one.port)) continue;
    // Whoever keeps it open holds the lock; what a killed one left is no open port.
    if (lockFile(directory_, fileOf(one.port, one.inward).c_str(), false)) {
      (void)directory_.remove(fileOf(one.port, one.inward));
      continue;
    }
    auto text = directory_.readFile(fileOf(one.port, one.inward), 64);
    if (text && readNumber(std::string_view(*text).substr(0, text->find('\n')), one.host_port)) ports.push_back(one);
  }
  return ports;
}

Result<void> Handle::closePort(std::uint16_t port, bool inward) {
  const std::string file = fileOf(port, inward);
  auto lock = directory_.openFile(file, {.flags = O_RDWR});
  if (!lock) {
    return fail(plainError(Stage::usage, "session expose", std::to_string(port), "it is not open",
                           "`caisson session expose ID` lists the open ports"));
  }
  if (auto removed = directory_.remove(file); !removed) return removed;
  // Its keeper sees that within half a second, and its end gives the lock free.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return note(inward ? "host port taken back" : "port closed", std::to_string(port));
}

}  // namespace caisson::session
