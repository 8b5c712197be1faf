#include "supervise/network/port_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace caisson::supervise {
namespace {

constexpr int kPortBacklog = 64;

sockaddr_in loopback4(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Error bindError(std::uint16_t port, std::string_view where, int error) {
  const std::string object = "127.0.0.1 of the " + std::string(where) + ", port " + std::to_string(port);
  if (error == EADDRINUSE) {
    return sysError(Stage::state, "bind", object, error, "stop the program that listens there, or choose another port");
  }
  if (error == EACCES) {
    return sysError(Stage::state, "bind", object, error,
                    "ports below net.ipv4.ip_unprivileged_port_start (1024 by default) are for root: choose one above");
  }
  return sysError(Stage::state, "bind", object, error, "choose another port");
}

}  // namespace

sys::Fd makeHostSocket(int family) {
  sys::Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // By default the kernel buffers up to 6 MiB that the other side does not read, outside the sandbox's memory limit.
  constexpr int kBufferBytes = 256 * 1024;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof(kBufferBytes));
  return socket;
}

int connectToLoopback(int socket, int family, std::uint16_t port) {
  // One side of the port, the larger one of the usual range (32768 to 60999); 0 leaves that end as it is.
  constexpr int kLocalPortRange = 51;  // IP_LOCAL_PORT_RANGE
  constexpr std::uint16_t kMiddle = 46884;
  const std::uint32_t range = port > kMiddle ? static_cast<std::uint32_t>(port - 1) << 16
                                             : static_cast<std::uint32_t>(std::min(port + 1, 65535));
  ::setsockopt(socket, SOL_IP, kLocalPortRange, &range, sizeof(range));
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  int connected = 0;
  if (family == AF_INET6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } else {
    const sockaddr_in address = loopback4(port);
    connected = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  return connected == 0 ? 0 : errno;
}

Result<sys::Fd> listenAtLoopback(sys::Fd socket, std::uint16_t& port, std::string_view where) {
  if (!socket) return fail(sysError(Stage::state, "socket", "127.0.0.1", errno));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  sockaddr_in address = loopback4(port);
  socklen_t size = sizeof(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(socket.get(), kPortBacklog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(bindError(port, where, errno));
  }
  port = ntohs(address.sin_port);
  return socket;
}

}  // namespace caisson::supervise
