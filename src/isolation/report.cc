// Fixed-size messages from the child to the supervisor. A separate file, since pid 1 of a session, a program without a
// C library, links it too.
#include "isolation/child.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <cerrno>

namespace caisson::isolation {

long sendRecord(int socket, const void* record, std::size_t size, const int* descriptors, std::size_t count) {
  iovec io{const_cast<void*>(record), size};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxSent * sizeof(int))] = {};
  if (count > kMaxSent) return -E2BIG;
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (count > 0) {
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    int* slots = reinterpret_cast<int*>(CMSG_DATA(part));
    for (std::size_t i = 0; i < count; ++i) slots[i] = descriptors[i];
  }
  return raw(SYS_sendmsg, socket, &header, MSG_NOSIGNAL);
}

long sendRecordWithRetry(int socket, const void* record, std::size_t size, const int* descriptors, std::size_t count) {
  constexpr int kTimeoutMs = 2000;
  long sent = -ETOOMANYREFS;
  for (int waited = 0; sent == -ETOOMANYREFS && waited < kTimeoutMs; ++waited) {
    if (waited > 0) {
      const timespec pause{0, 1000000};
      raw(SYS_nanosleep, &pause, nullptr);
    }
    sent = sendRecord(socket, record, size, descriptors, count);
  }
  return sent;
}

void reportAndExit(const Block& block, Stage stage, const char* call, const char* object, long error, ErrorCode code) {
  Message message{};
  message.kind = MessageKind::failure;
  message.stage = static_cast<std::uint8_t>(stage);
  message.code = static_cast<std::uint8_t>(code);
  message.error = static_cast<std::int32_t>(error);
  copyText(message.call, kCallBytes, call);
  copyText(message.object, kObjectBytes, object);
  raw(SYS_write, block.control, &message, sizeof(message));  // write is allowed by every filter
  for (;;) raw(SYS_exit_group, 125);
}

}  // namespace caisson::isolation
