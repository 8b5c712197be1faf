// Loopback sockets for ports between a sandbox and the host.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// A TCP socket of this process's network namespace.
sys::Fd makeHostSocket(int family);

/// Connects without blocking. Returns 0, EINPROGRESS or the errno.
/// On Linux 6.3 and later the local port is never `port`, which could connect the socket to itself.
int connectToLoopback(int socket, int family, std::uint16_t port);

/// Binds to 127.0.0.1 and listens, non-blocking. Sets `port` if it was 0. `where`: "host" or "session", for the error.
Result<sys::Fd> listenAtLoopback(sys::Fd socket, std::uint16_t& port, std::string_view where);

}  // namespace caisson::supervise
