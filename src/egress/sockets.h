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
/// nullopt for a family other than IPv4 and IPv6.
std::optional<Endpoint> endpointOf(const sockaddr_storage& storage);

/// The original destination of an accepted connection: its address before the redirection or, without redirection, the
/// address it was accepted on.
std::optional<Endpoint> originalTarget(int descriptor, bool redirected);

/// The remote end of a connection.
std::optional<Endpoint> peerOf(int descriptor);

/// Whether a connection has the same end twice. The kernel may choose the port that is connected to as the local one if
/// nothing listens there; the socket would then be its own server, and keep that port.
bool connectedToItself(int descriptor);

/// A non-blocking TCP socket that connects to `endpoint`; invalid with errno on immediate failure. `buffer_bytes`: as
/// in boundBuffers(), 0 for none.
sys::Fd startConnect(const Endpoint& endpoint, int buffer_bytes = 0);

/// Keeps the kernel's two buffers of a TCP socket at this size (it takes up to twice as much memory). Else they grow
/// with the transfer, to 6 and 4 MiB by default, which is memory outside the sandbox's limit.
void boundBuffers(int descriptor, int bytes);

/// Makes close() reset the connection, so that the other side sees a denial and not a normal end.
void resetOnClose(int descriptor);

}  // namespace caisson::egress
