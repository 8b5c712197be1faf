#include "egress/packet_log.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sys/netlink.h"

namespace caisson::egress {
namespace {

constexpr std::uint8_t kUdp = 17, kIcmp = 1, kIcmp6 = 58;
constexpr int kMessagesATurn = 64, kMessagesAtTheEnd = 10'000;

}  // namespace

std::optional<PacketTarget> readPacket(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return std::nullopt;
  PacketTarget target;
  std::uint8_t protocol = 0;
  std::size_t header = 0;
  if (bytes[0] >> 4 == 4 && bytes.size() >= 20) {
    header = static_cast<std::size_t>(bytes[0] & 15) * 4;
    protocol = bytes[9];
    std::uint32_t value = 0;
    for (std::size_t i = 16; i < 20; ++i) value = value << 8 | bytes[i];
    target.address = Address::v4(value);
  } else if (bytes[0] >> 4 == 6 && bytes.size() >= 40) {
    header = 40;
    protocol = bytes[6];
    target.address = Address::v6(bytes.subspan(24).first<16>());
  } else {
    return std::nullopt;
  }
  if (protocol == kUdp) {
    target.operation = "udp";
    if (bytes.size() >= header + 4) {
      target.port = static_cast<std::uint16_t>(bytes[header + 2] << 8 | bytes[header + 3]);
    }
  } else if (protocol == kIcmp || protocol == kIcmp6) {
    target.operation = "icmp";
  } else {
    target.operation = "protocol " + std::to_string(protocol);
  }
  return target;
}

void PacketLog::serve(int netlink) {
  netlink_ = netlink;
  server_.loop.watch(netlink, EPOLLIN, this);
}

void PacketLog::onEvents(int, std::uint32_t) {
  for (int i = 0; i < kMessagesATurn && receive(); ++i) {
  }
}

void PacketLog::finish() {
  for (int i = 0; i < kMessagesAtTheEnd && receive(); ++i) {
  }
  if (std::exchange(overrun_, false)) server_.reportUnknown(1);  // at least one
}

bool PacketLog::receive() {
  alignas(nlmsghdr) std::uint8_t room[8192];
  const ssize_t got = ::recv(netlink_, room, sizeof(room), MSG_DONTWAIT);
  if (got < 0 && errno == ENOBUFS) return overrun_ = true;
  if (got <= 0) return false;
  sys::forEachNetlinkMessage(room, static_cast<std::size_t>(got), [&](const nlmsghdr& message) {
    if (message.nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET)) return;
    takeMessage({sys::netlinkBody(message), message.nlmsg_len - sizeof(nlmsghdr)});
  });
  return true;
}

void PacketLog::countMissing(std::uint32_t sequence) {
  const std::uint32_t missing = sequence - next_sequence_;
  next_sequence_ = sequence + 1;
  if (missing == 0) return;
  overrun_ = false;
  server_.reportUnknown(missing);
}

void PacketLog::takeMessage(std::span<const std::uint8_t> rest) {
  if (rest.size() < sizeof(nfgenmsg)) return;
  rest = rest.subspan(sizeof(nfgenmsg));
  while (rest.size() >= sizeof(nlattr)) {
    nlattr attribute;
    std::memcpy(&attribute, rest.data(), sizeof(attribute));
    if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > rest.size()) break;
    const auto value = rest.subspan(sizeof(attribute), attribute.nla_len - sizeof(attribute));
    std::uint32_t sequence = 0;
    if (attribute.nla_type == NFULA_PAYLOAD) take(value);
    if (attribute.nla_type == NFULA_SEQ && value.size() == sizeof(sequence)) {
      std::memcpy(&sequence, value.data(), sizeof(sequence));
      countMissing(ntohl(sequence));
    }
    rest = rest.subspan(std::min<std::size_t>(rest.size(), (attribute.nla_len + 3U) & ~3U));
  }
}

void PacketLog::take(std::span<const std::uint8_t> packet) {
  const auto target = readPacket(packet);
  if (!target) return;
  Request request;
  request.operation = target->operation;
  const std::string_view name = server_.names.nameOf(target->address);
  request.host = name.empty() ? target->address.text() : std::string(name);
  request.port = target->port;
  request.rule = "only TCP leaves the sandbox";
  request.remedy = target->operation == "udp" && target->port == 443 ? "use HTTPS over TCP instead of QUIC" : "";
  server_.report(std::move(request));
}

}  // namespace caisson::egress
