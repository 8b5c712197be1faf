// Iterates over the netlink messages of one datagram without trusting their lengths. Inline and free of libc, since the
// child of a launch uses it too.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>

namespace caisson::sys {

/// The payload after a message's header.
inline const std::uint8_t* netlinkBody(const nlmsghdr& message) {
  return reinterpret_cast<const std::uint8_t*>(&message) + sizeof(nlmsghdr);
}

/// Calls `take` with every complete message of `bytes`, which must be aligned for a header.
template <class Take>
[[gnu::always_inline]] inline void forEachNetlinkMessage(const void* bytes, std::size_t size, Take take) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  while (size >= sizeof(nlmsghdr)) {
    const auto& message = *reinterpret_cast<const nlmsghdr*>(at);
    if (message.nlmsg_len < sizeof(nlmsghdr) || message.nlmsg_len > size) return;
    take(message);
    const std::size_t aligned = (message.nlmsg_len + 3U) & ~3U;
    if (aligned >= size) return;
    at += aligned;
    size -= aligned;
  }
}

}  // namespace caisson::sys
