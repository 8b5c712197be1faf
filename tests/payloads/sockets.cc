// Sockets of families that reach the kernel or the host, and listeners and memory that the host exposes.
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "payload.h"

namespace payload {
namespace {

int trySocket(const Arguments& arguments) {
  return report("socket", socket(std::atoi(arguments[0].c_str()), std::atoi(arguments[1].c_str()),
                                 std::atoi(arguments[2].c_str())));
}

/// Sets a TCP socket option whose value is text.
int setTcpOption(const Arguments& arguments) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused("socket");
  const std::string& value = arguments[1];
  return report("setsockopt", setsockopt(fd, IPPROTO_TCP, std::atoi(arguments[0].c_str()), value.data(),
                                         static_cast<socklen_t>(value.size())));
}

/// Both ends of a loopback connection.
bool connectPair(int (&ends)[2]) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool ready = listener >= 0 && ends[0] >= 0 && bind(listener, name, length) == 0 && listen(listener, 1) == 0 &&
                     getsockname(listener, name, &length) == 0 && connect(ends[0], name, length) == 0;
  ends[1] = ready ? accept(listener, nullptr, nullptr) : -1;
  close(listener);
  return ends[1] >= 0;
}

/// Fills the buffers of unread loopback connections, and prints how many MiB they hold.
int fillTcpBuffers(const Arguments& arguments) {
  static const std::string piece(65536, 'x');
  std::size_t total = 0;
  for (int count = std::atoi(arguments[0].c_str()); count > 0; --count) {
    int ends[2];
    if (!connectPair(ends)) return refused("connect");
    for (int quiet = 0; quiet < 5;) {  // the receiver's buffer grows slightly later than the sender's
      const ssize_t sent = send(ends[0], piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) {
        total += static_cast<std::size_t>(sent);
        quiet = 0;
      } else {
        pauseFor(1);
        ++quiet;
      }
    }
  }
  return done(std::to_string(total >> 20U));
}

int connectUnix(const std::string& name, bool abstract) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 >= sizeof(address.sun_path)) return kUsage;
  std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  const std::size_t length = offsetof(sockaddr_un, sun_path) + name.size() + 1;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused("socket");
  return report("connect", connect(fd, reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length)));
}

int connectAbstract(const Arguments& arguments) { return connectUnix(arguments[0], true); }
int connectPath(const Arguments& arguments) { return connectUnix(arguments[0], false); }

/// The host's own loopback.
int connectLoopback(const Arguments& arguments) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(arguments[0].c_str())));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return refused("socket");
  return report("connect", connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
}

/// Attaches a System V segment that the host created, and prints its text.
int attachSegment(const Arguments& arguments) {
  const int id = shmget(static_cast<key_t>(std::strtol(arguments[0].c_str(), nullptr, 0)), 0, 0);
  if (id < 0) return refused("shmget");
  void* memory = shmat(id, nullptr, SHM_RDONLY);
  if (memory == reinterpret_cast<void*>(-1)) return refused("shmat");  // NOLINT: the call's error value
  return done(static_cast<const char*>(memory));
}

constexpr Verb kVerbs[] = {
    {"fill-tcp-buffers", "CONNECTIONS", 1, fillTcpBuffers},
    {"set-tcp-option", "NUMBER TEXT", 2, setTcpOption},
    {"socket", "FAMILY TYPE PROTOCOL", 3, trySocket},
    {"connect-abstract", "NAME", 1, connectAbstract},
    {"connect-path", "PATH", 1, connectPath},
    {"connect-loopback", "PORT", 1, connectLoopback},
    {"attach-segment", "KEY", 1, attachSegment},
};

}  // namespace

std::span<const Verb> socketVerbs() { return kVerbs; }

}  // namespace payload
