// Listeners on the sandbox's loopback for ports of the host. They are made here, inside the network namespace, and
// relayed by the supervisor outside. The payload does not exist yet, so it can neither take a port first nor inherit a
// listener.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "isolation/child.h"

namespace caisson::isolation {
namespace {

constexpr int kHostPortBacklog = 64;

/// Writes "host port, inside the sandbox: 5432" to `text`, for errors.
void describePort(std::uint16_t port, char* text) {
  const char* prefix = "host port, inside the sandbox: ";
  while (*prefix != 0) *text++ = *prefix++;
  char digits[5];
  int count = 0;
  for (unsigned rest = port; rest > 0 || count == 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) *text++ = digits[--count];
  *text = 0;
}

/// Returns a listener at 127.0.0.1 or ::1, or a negative errno.
long openListener(int family, std::uint16_t port) {
  const long fd = raw(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return fd;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = __builtin_bswap16(port);
  four.sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = four.sin_port;
  six.sin6_addr.s6_addr[15] = 1;
  long result = family == AF_INET ? raw(SYS_bind, fd, &four, sizeof(four)) : raw(SYS_bind, fd, &six, sizeof(six));
  if (result >= 0) result = raw(SYS_listen, fd, kHostPortBacklog);
  if (result >= 0) return fd;
  closeFd(static_cast<int>(fd));
  return result;
}

}  // namespace

void openHostPorts(const Block& block) {
  int descriptors[2 * kMaxHostPorts];
  std::size_t count = 0;
  bool both = true;  // families
  for (std::uint32_t i = 0; i < block.host_port_count; ++i) {
    char text[48];
    describePort(block.host_ports[i], text);
    const long four = must(block, Stage::namespaces, "bind", text, openListener(AF_INET, block.host_ports[i]));
    descriptors[count++] = static_cast<int>(four);
    if (!both) continue;
    const long six = openListener(AF_INET6, block.host_ports[i]);
    if (six < 0 && i == 0 && six != -EADDRINUSE) {
      both = false;  // no IPv6 here
      continue;
    }
    descriptors[count++] = static_cast<int>(must(block, Stage::namespaces, "bind", text, six));
  }
  Message message{};
  message.kind = MessageKind::host_ports;
  message.listeners_per_port = both ? 2 : 1;
  must(block, Stage::namespaces, "sendmsg", "host ports",
       sendRecordWithRetry(block.control, &message, sizeof(message), descriptors, count));
  for (std::size_t i = 0; i < count; ++i) closeFd(descriptors[i]);
}

}  // namespace caisson::isolation
