// Small helpers around sockets of either family.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>

#include "egress/address.h"
#include "sys/fd.h"

namespace caisson::egress {

struct Endpoint {
  Address address;
  std::uint16_t port = 0;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress socketAddress(const Endpoint& endpoint);
std::optional<Endpoint> endpointOf(const sockaddr_storage& storage);

/// Where an accepted connection was meant to go: the address it had before the redirection, or without one the address
/// it was accepted on.
std::optional<Endpoint> originalTarget(int descriptor, bool redirected);

/// The other end of a connection.
std::optional<Endpoint> peerOf(int descriptor);

/// A non-blocking TCP socket on its way to `endpoint`; invalid (with errno) when that fails at once.
sys::Fd startConnect(const Endpoint& endpoint);

/// Ends a connection with a reset, so that the other side sees a refusal and not a quiet end.
void resetOnClose(int descriptor);

}  // namespace caisson::egress
