#include "send_descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace payload {

ssize_t sendCopies(int socket, int descriptor, std::size_t count, std::size_t bytes) {
  char byte = 0;
  iovec io{&byte, bytes};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxSent * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(count * sizeof(int));
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(CMSG_DATA(part) + i * sizeof(int), &descriptor, sizeof(descriptor));
  return sendmsg(socket, &header, 0);
}

}  // namespace payload
