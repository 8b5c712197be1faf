// One message of a socket together with the descriptors that came with it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "sys/fd.h"

namespace caisson::sys {

inline constexpr std::size_t kMaxReceived = 96;

/// Receives into `into`, and the descriptors into `descriptors` (at most kMaxReceived), in their order and closed at
/// exec. What there is no room for is closed. Returns the number of bytes, 0 at the end, or a negative errno.
/// `flags` as of recvmsg; an interruption is no end.
ssize_t receiveMessage(int socket, std::span<std::byte> into, std::span<Fd> descriptors, int flags = 0);

}  // namespace caisson::sys
