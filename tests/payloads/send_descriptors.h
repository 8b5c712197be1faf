// Descriptors sent through a socket, for attempts that hold them there.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace payload {

/// The most descriptors that the kernel takes in one message.
inline constexpr std::size_t kMaxSent = 253;

/// Sends `count` copies of a descriptor in one message, with `bytes` bytes of data (0 or 1). The result is that of
/// sendmsg().
ssize_t sendCopies(int socket, int descriptor, std::size_t count, std::size_t bytes = 1);

}  // namespace payload
