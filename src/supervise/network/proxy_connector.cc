#include "supervise/network/proxy_connector.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "isolation/child.h"
#include "isolation/netlink.h"
#include "supervise/processes/proc_text.h"
#include "sys/effective_ids.h"
#include "sys/process_view.h"

namespace caisson::supervise {
namespace {

constexpr auto kPairTimeout = std::chrono::milliseconds(500);
constexpr std::size_t kMaxDeniedAddresses = 100;

struct Destination {
  int family = AF_UNSPEC;
  std::string host;
  std::uint16_t port = 0;
  bool proxy = false;  ///< 127.0.0.1:3128, as the payload's environment names it
};

/// Copies the address from the payload's memory, once. Returns nothing if it is unreadable or too short.
std::optional<Destination> readDestination(pid_t process, std::uint64_t address, std::uint64_t length) {
  sockaddr_storage room{};
  const std::size_t size = std::min<std::uint64_t>(static_cast<std::uint32_t>(length), sizeof(room));
  if (size < sizeof(sa_family_t)) return std::nullopt;
  if (!sys::readMemory(process, address, {reinterpret_cast<char*>(&room), size})) return std::nullopt;
  Destination to;
  to.family = room.ss_family;
  char text[INET6_ADDRSTRLEN] = {};
  std::uint32_t four = 0;
  if (room.ss_family == AF_INET && size >= sizeof(sockaddr_in)) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&room);
    ::inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    four = ntohl(in->sin_addr.s_addr);
    to.port = ntohs(in->sin_port);
  } else if (room.ss_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(&room);
    ::inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
    if (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr)) {
      std::memcpy(&four, in->sin6_addr.s6_addr + 12, sizeof(four));
      four = ntohl(four);
    }
    to.port = ntohs(in->sin6_port);
  } else {
    to.host = room.ss_family == AF_UNIX ? "a local socket" : "family " + std::to_string(room.ss_family);
    return to;
  }
  to.host = text;
  to.proxy = four == INADDR_LOOPBACK && to.port == isolation::kProxyPort;
  return to;
}

struct ConnectedPair {
  sys::Fd payload, egress;
};

bool sameEndpoint(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_family == b.sin_family && a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

/// Two TCP sockets that are connected to each other. Another user could connect to the listener while it exists, so
/// only the connection of our own socket is taken.
std::optional<ConnectedPair> connectedPair() {
  const auto deadline = std::chrono::steady_clock::now() + kPairTimeout;
  constexpr int kType = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const sys::Fd listener(::socket(AF_INET, kType, 0));
  sys::Fd client(::socket(AF_INET, kType, 0));
  sockaddr_in address{}, own{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (!listener || !client || ::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), 16) != 0 ||
      ::getsockname(listener.get(), any, &size) != 0) {
    return std::nullopt;
  }
  if (::connect(client.get(), any, size) != 0 && errno != EINPROGRESS) return std::nullopt;
  size = sizeof(own);
  if (::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return std::nullopt;
  for (;;) {
    sockaddr_in peer{};
    size = sizeof(peer);
    sys::Fd accepted(
        ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted && sameEndpoint(peer, own)) return ConnectedPair{std::move(client), std::move(accepted)};
    if (accepted) continue;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{listener.get(), POLLIN, 0};
    if (errno != EAGAIN || left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) {
      return std::nullopt;
    }
  }
}

/// The flags of a descriptor of the process (O_NONBLOCK, O_CLOEXEC and others), or nothing if it has none.
std::optional<int> flagsOf(pid_t process, int number) {
  char name[32];
  std::snprintf(name, sizeof(name), "fdinfo/%d", number);
  const std::string text = readFile(process, name);
  constexpr std::string_view kKey = "flags:\t";
  const std::size_t at = text.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  int flags = 0;
  std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), flags, 8);
  return flags;
}

bool isSocket(pid_t process, int number) {
  char path[64], target[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", process, number);
  const ssize_t length = ::readlink(path, target, sizeof(target));
  return length > 0 && std::string_view(target, static_cast<std::size_t>(length)).starts_with("socket:");
}

std::uint64_t nowMs() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

ProxyConnector::ProxyConnector(sys::Fd link, const plan::Identity& payload, Report report)
    : link_(std::move(link)), uid_(payload.outside_uid), gid_(payload.outside_gid), report_(std::move(report)) {
  ::fcntl(link_.get(), F_SETFL, O_NONBLOCK);  // a slow egress process must not hold up the supervisor
}

int ProxyConnector::connect(const Attempt& attempt, const Listener& listener) {
  const int number = static_cast<int>(attempt.arguments[0]);
  std::optional<Destination> to;
  {
    const sys::EffectiveIds ids(uid_, gid_);  // a root caller may lack the right to look into other users' processes
    if (!ids.valid()) return EPERM;
    to = readDestination(attempt.pid, attempt.arguments[1], attempt.arguments[2]);
    if (!listener.isValid(attempt)) return ESRCH;
    if (!to) return EFAULT;
    if (to->family == AF_UNSPEC) return EAFNOSUPPORT;
    if (to->proxy) return connectToProxy(attempt, listener, number);
  }
  deny(to->host, to->port);
  return EACCES;
}

int ProxyConnector::connectToProxy(const Attempt& attempt, const Listener& listener, int number) {
  const auto flags = flagsOf(attempt.pid, number);
  if (!flags) return EBADF;
  if (!isSocket(attempt.pid, number)) return ENOTSOCK;
  auto pair = connectedPair();
  if (!pair) return ECONNREFUSED;
  if ((*flags & O_NONBLOCK) == 0) ::fcntl(pair->payload.get(), F_SETFL, 0);
  const char connection = 1;
  const int sent[] = {pair->egress.get()};
  if (isolation::sendRecord(link_.get(), &connection, 1, sent, 1) < 0) return ECONNREFUSED;
  return listener.replaceDescriptor(attempt, number, pair->payload.get(), (*flags & O_CLOEXEC) != 0);
}

void ProxyConnector::deny(const std::string& host, std::uint16_t port) {
  egress::Report report{.kind = egress::Report::Kind::request, .text = {}, .request = {}, .totals = {}};
  report.request.operation = "connect";
  report.request.host = host;
  report.request.port = port;
  report.request.rule = "isolation.tier";
  report.request.remedy =
      "the landlock tier reaches hosts through the proxy only: use a program that follows HTTP_PROXY and HTTPS_PROXY";
  const std::string object = report.request.object();
  if (denied_.contains(object)) return;
  if (denied_.size() < kMaxDeniedAddresses) {
    denied_.insert(object);
    return report_(report);
  }
  if (beyond_.count++ == 0) beyond_.first_ms = nowMs();
  beyond_.last_ms = nowMs();
}

void ProxyConnector::finish() {
  if (beyond_.count == 0) return;
  report_({.kind = egress::Report::Kind::overflow, .text = {}, .request = {}, .totals = {}, .overflow = beyond_});
  beyond_ = {};
}

}  // namespace caisson::supervise
