#include "egress/sockets.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace caisson::egress {
namespace {

constexpr int kOriginalTarget = 80;  // SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST

}  // namespace

SocketAddress socketAddress(const Endpoint& endpoint) {
  SocketAddress result;
  if (endpoint.address.isV4()) {
    auto* four = reinterpret_cast<sockaddr_in*>(&result.storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(endpoint.port);
    four->sin_addr.s_addr = htonl(endpoint.address.v4Value());
    result.size = sizeof(sockaddr_in);
  } else {
    auto* six = reinterpret_cast<sockaddr_in6*>(&result.storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(endpoint.port);
    std::copy(endpoint.address.bytes().begin(), endpoint.address.bytes().end(), six->sin6_addr.s6_addr);
    result.size = sizeof(sockaddr_in6);
  }
  return result;
}

std::optional<Endpoint> endpointOf(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET) {
    const auto* four = reinterpret_cast<const sockaddr_in*>(&storage);
    return Endpoint{Address::v4(ntohl(four->sin_addr.s_addr)), ntohs(four->sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto* six = reinterpret_cast<const sockaddr_in6*>(&storage);
    std::array<std::uint8_t, 16> bytes{};
    std::copy(std::begin(six->sin6_addr.s6_addr), std::end(six->sin6_addr.s6_addr), bytes.begin());
    return Endpoint{Address::v6(bytes), ntohs(six->sin6_port)};
  }
  return std::nullopt;
}

std::optional<Endpoint> originalTarget(int descriptor, bool redirected) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  const auto local = endpointOf(storage);
  if (!redirected || !local) return local;
  const int level = local->address.isV4() ? SOL_IP : SOL_IPV6;
  size = sizeof(storage);
  if (::getsockopt(descriptor, level, kOriginalTarget, &storage, &size) != 0) return std::nullopt;
  return endpointOf(storage);
}

std::optional<Endpoint> peerOf(int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  return endpointOf(storage);
}

bool connectedToItself(int descriptor) {
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  const auto peer = peerOf(descriptor);
  if (!peer || ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &size) != 0) return false;
  const auto own = endpointOf(local);
  return own && own->port == peer->port && own->address == peer->address;
}

sys::Fd startConnect(const Endpoint& endpoint, int buffer_bytes) {
  const int family = endpoint.address.isV4() ? AF_INET : AF_INET6;
  sys::Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (buffer_bytes > 0) boundBuffers(socket.get(), buffer_bytes);  // before connect(), which fixes the window's scale
  const SocketAddress to = socketAddress(endpoint);
  if (::connect(socket.get(), to.get(), to.size) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    socket.reset();
    errno = error;
  }
  return socket;
}

void boundBuffers(int descriptor, int bytes) {
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void resetOnClose(int descriptor) {
  const linger now{1, 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace caisson::egress
