// The sandbox's network sockets: made inside its network namespace and sent to the egress process outside. A socket
// stays in the namespace it was made in, so nothing else has to cross the boundary.
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

#include "isolation/child.h"
#include "sys/netlink.h"

namespace caisson::isolation {
namespace {

constexpr int kBacklog = 1024;

long openNetlink(int protocol) { return raw(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol); }

/// Sends a batch and reads its acknowledgements, which the kernel has queued when send returns. Returns 0 or a negative
/// errno.
long exchange(int netlink, const FlatBatch& batch) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const long sent = raw(SYS_sendto, netlink, batch.bytes, batch.size, 0, &kernel, sizeof(kernel));
  if (sent < 0) return sent;
  std::uint32_t acknowledged = 0;
  for (;;) {
    alignas(nlmsghdr) char room[8192];
    const long got = raw(SYS_recvfrom, netlink, room, sizeof(room), MSG_DONTWAIT, nullptr, nullptr);
    if (got <= 0) break;
    long failure = 0;
    sys::forEachNetlinkMessage(room, static_cast<std::size_t>(got), [&](const nlmsghdr& message) {
      if (message.nlmsg_type != NLMSG_ERROR || message.nlmsg_len < sizeof(nlmsghdr) + sizeof(nlmsgerr)) return;
      const int error = reinterpret_cast<const nlmsgerr*>(sys::netlinkBody(message))->error;
      if (error != 0 && failure == 0) failure = error;
      ++acknowledged;
    });
    if (failure != 0) return failure;
  }
  return acknowledged == batch.acknowledged ? 0 : -EPROTO;
}

long exchangeOnce(int protocol, const FlatBatch& batch) {
  const long netlink = openNetlink(protocol);
  if (netlink < 0) return netlink;
  const long result = exchange(static_cast<int>(netlink), batch);
  closeFd(static_cast<int>(netlink));
  return result;
}

/// A socket bound to every address of both families, or of IPv4 only if the kernel has no IPv6.
int openSocket(const Block& block, int type, std::uint16_t port) {
  long fd = raw(SYS_socket, AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const bool v6 = fd >= 0;
  if (!v6) {
    fd = must(block, Stage::namespaces, "socket", "egress",
              raw(SYS_socket, AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = __builtin_bswap16(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (v6) {
    const int both = 0;
    raw(SYS_setsockopt, fd, SOL_IPV6, IPV6_V6ONLY, &both, sizeof(both));
    must(block, Stage::namespaces, "bind", "egress", raw(SYS_bind, fd, &six, sizeof(six)));
  } else {
    must(block, Stage::namespaces, "bind", "egress", raw(SYS_bind, fd, &four, sizeof(four)));
  }
  if (type == SOCK_STREAM) must(block, Stage::namespaces, "listen", "egress", raw(SYS_listen, fd, kBacklog));
  return static_cast<int>(fd);
}

}  // namespace

void openEgress(const Block& block) {
  const FlatEgress& egress = block.egress;
  must(block, Stage::namespaces, "netlink", "route to lo", exchangeOnce(NETLINK_ROUTE, egress.route4));
  (void)exchangeOnce(NETLINK_ROUTE, egress.route6);  // may fail: a kernel without IPv6 needs no route

  EgressHandOver message{};
  int descriptors[kMaxEgressSockets];
  std::size_t count = 0;
  descriptors[count++] = openSocket(block, SOCK_STREAM, egress.proxy_port);
  descriptors[count++] = openSocket(block, SOCK_DGRAM, egress.dns_port);
  descriptors[count++] = openSocket(block, SOCK_STREAM, egress.dns_port);
  message.redirected = egress.use_filter && exchangeOnce(NETLINK_NETFILTER, egress.filter) == 0 ? 1 : 0;
  if (message.redirected != 0) {
    const long log = openNetlink(NETLINK_NETFILTER);
    if (log >= 0 && exchange(static_cast<int>(log), egress.log) == 0) {
      message.has_log = 1;
      descriptors[count++] = static_cast<int>(log);
    } else {
      closeFd(static_cast<int>(log));
    }
    descriptors[count++] = openSocket(block, SOCK_STREAM, egress.capture_port);
  } else {
    (void)exchangeOnce(NETLINK_ROUTE, egress.rules4);  // optional: makes UDP fail at once instead of later
    (void)exchangeOnce(NETLINK_ROUTE, egress.rules6);
    if (egress.too_many_ports) {
      reportAndExit(block, Stage::namespaces, "nf_tables", "more than 64 permitted ports", EOPNOTSUPP);
    }
    for (std::uint32_t i = 0; i < egress.port_count; ++i) {
      descriptors[count++] = openSocket(block, SOCK_STREAM, egress.ports[i]);
    }
  }
  message.count = static_cast<std::uint32_t>(count);
  must(block, Stage::namespaces, "sendmsg", "egress process",
       sendRecordWithRetry(egress.link, &message, sizeof(message), descriptors, count));
  for (std::size_t i = 0; i < count; ++i) closeFd(descriptors[i]);
}

}  // namespace caisson::isolation
