#include "supervise/control_channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace caisson::supervise {

Channel receive(int control, Arrival& arrival) {
  iovec io{&arrival.message, sizeof(arrival.message)};
  alignas(cmsghdr) char room[CMSG_SPACE(Arrival::kMost * sizeof(int))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  const ssize_t got = ::recvmsg(control, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got == 0) return Channel::closed;
  if (got != static_cast<ssize_t>(sizeof(arrival.message))) return Channel::empty;
  if (const cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr && part->cmsg_type == SCM_RIGHTS) {
    int numbers[Arrival::kMost];
    const std::size_t count = std::min((part->cmsg_len - CMSG_LEN(0)) / sizeof(int), Arrival::kMost);
    std::memcpy(numbers, CMSG_DATA(part), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) arrival.descriptors[i] = sys::Fd(numbers[i]);
  }
  return Channel::message;
}

}  // namespace caisson::supervise
