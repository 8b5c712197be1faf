#include "sys/receive.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace caisson::sys {

ssize_t receiveMessage(int socket, std::span<std::byte> into, std::span<Fd> descriptors, int flags, pid_t* sender) {
  iovec io{into.data(), into.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxReceived * sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
  const std::size_t most = std::min(descriptors.size(), kMaxReceived);
  const std::size_t space =
      (most > 0 ? CMSG_SPACE(most * sizeof(int)) : 0) + (sender != nullptr ? CMSG_SPACE(sizeof(ucred)) : 0);
  ssize_t got;
  msghdr header;
  bool reset = false;
  for (;;) {
    header = {};
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    header.msg_control = space > 0 ? room : nullptr;
    header.msg_controllen = space;
    got = ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
    if (got >= 0) break;
    const int error = errno;
    // The kernel reports once that the peer died without reading our last message, before what the peer had sent.
    const bool first_reset = error == ECONNRESET && !std::exchange(reset, true);
    if (error != EINTR && !first_reset) return -error;
  }
  std::size_t next = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS && sender != nullptr) {
      ucred credentials;
      std::memcpy(&credentials, CMSG_DATA(part), sizeof(credentials));
      *sender = credentials.pid;
    }
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof(number));
      Fd received(number);  // alignment of the control buffer admits one extra descriptor: close it
      if (next < most) descriptors[next++] = std::move(received);
    }
  }
  return got;
}

}  // namespace caisson::sys
