// Receives one socket message together with its descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "sys/fd.h"

namespace caisson::sys {

inline constexpr std::size_t kMaxReceived = 96;

/// Receives into `into`, and the descriptors (at most kMaxReceived, close-on-exec, in order) into `descriptors`. Closes
/// excess descriptors. Returns the number of bytes, 0 at the end, or a negative errno. `flags` as for recvmsg; retries
/// on EINTR, and once on ECONNRESET, so that the last messages of a peer that died are read. `sender`: gets the
/// sender's pid, as the kernel knows it, if the socket has SO_PASSCRED.
ssize_t receiveMessage(int socket, std::span<std::byte> into, std::span<Fd> descriptors, int flags = 0,
                       pid_t* sender = nullptr);

}  // namespace caisson::sys
