#include "session/connection.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "caisson/run.h"
#include "session/sandbox.h"
#include "sys/receive.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxDescriptors = 5;
static_assert(kCpuLimit == static_cast<std::uint32_t>(Limit::cpu));

}  // namespace

Result<std::optional<Connection>> Connection::open(const sys::RootDir& directory) {
  sys::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail(sysError(Stage::state, "socket", "session", errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory.descriptor(),
                kControlSocket);
  int connected;
  do {
    connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (connected != 0 && errno == EINTR);
  if (connected == 0) return Connection(std::move(socket));
  if (errno == ECONNREFUSED || errno == ENOENT) return std::nullopt;
  return fail(sysError(Stage::state, "connect", directory.knownAs() + "/" + kControlSocket, errno));
}

bool Connection::send(const Request& request, std::span<const int> descriptors) const {
  Request copy = request;
  iovec io{&copy, sizeof(copy)};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(copy));
}

std::optional<Connection::Said> Connection::receive(bool wait, bool& closed) const {
  closed = false;
  isolation::Message message{};
  static_assert(sizeof(Reply) < sizeof(isolation::Message));
  sys::Fd received[2];
  const ssize_t got = sys::receiveMessage(socket_.get(), std::as_writable_bytes(std::span(&message, 1)), received,
                                          wait ? 0 : MSG_DONTWAIT);
  if (got == -EAGAIN) return std::nullopt;
  Said said;
  said.descriptor = std::move(received[0]);
  said.second = std::move(received[1]);
  if (got == static_cast<ssize_t>(sizeof(Reply))) {
    Reply reply;
    std::memcpy(static_cast<void*>(&reply), &message, sizeof(reply));
    said.what = reply;
    return said;
  }
  if (got == static_cast<ssize_t>(sizeof(message))) {
    said.what = message;
    return said;
  }
  closed = true;
  return std::nullopt;
}

Result<Connection::Said> Connection::ask(const Request& request, std::string_view call, std::string_view object,
                                         std::span<const int> descriptors) const {
  bool closed = false;
  std::optional<Said> said;
  if (!send(request, descriptors) || !(said = receive(true, closed))) return fail(goneError(call, object));
  if (const auto* message = std::get_if<isolation::Message>(&said->what)) return fail(errorOf(*message));
  const Reply& reply = std::get<Reply>(said->what);
  if (reply.say == Say::refused) return fail(sysError(Stage::state, call, object, reply.value));
  return std::move(*said);
}

Error errorOf(isolation::Message message) {
  message.call[isolation::kCallBytes - 1] = 0;
  message.object[isolation::kObjectBytes - 1] = 0;
  return sysError(static_cast<Stage>(message.stage), message.call, message.object, message.value);
}

Error goneError(std::string_view call, std::string_view object) {
  return plainError(Stage::state, call, object, "the session's sandbox ended meanwhile",
                    "its time may be over, its memory used up, or somebody ended it; see `caisson session list`");
}

}  // namespace caisson::session
