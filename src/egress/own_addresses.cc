#include "egress/own_addresses.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sys/netlink.h"

namespace caisson::egress {
namespace {

struct Query {
  nlmsghdr header;
  rtmsg route;
  rtattr attribute;
  std::uint8_t address[16];
};

}  // namespace

Result<void> OwnAddresses::open() {
  netlink_ = sys::Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink_) return fail(sysError(Stage::launch, "socket", "NETLINK_ROUTE", errno));
  return {};
}

bool OwnAddresses::contains(const Address& address) const {
  const bool four = address.isV4();
  const std::size_t size = four ? 4 : 16;
  Query query{};
  query.header.nlmsg_type = RTM_GETROUTE;
  query.header.nlmsg_flags = NLM_F_REQUEST;
  query.header.nlmsg_len = static_cast<std::uint32_t>(sizeof(nlmsghdr) + sizeof(rtmsg) + sizeof(rtattr) + size);
  query.route.rtm_family = four ? AF_INET : AF_INET6;
  query.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
  query.attribute.rta_type = RTA_DST;
  query.attribute.rta_len = static_cast<unsigned short>(sizeof(rtattr) + size);
  std::memcpy(query.address, address.bytes().data() + (four ? 12 : 0), size);
  if (::send(netlink_.get(), &query, query.header.nlmsg_len, 0) < 0) return true;
  alignas(nlmsghdr) char room[4096];
  const ssize_t got = ::recv(netlink_.get(), room, sizeof(room), 0);
  if (got < static_cast<ssize_t>(sizeof(nlmsghdr))) return true;
  const auto* header = reinterpret_cast<const nlmsghdr*>(room);
  if (header->nlmsg_type == NLMSG_ERROR) return false;  // no route: not ours, and not reachable
  if (header->nlmsg_type != RTM_NEWROUTE || got < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(rtmsg))) return true;
  const auto* route = reinterpret_cast<const rtmsg*>(sys::netlinkBody(*header));
  return route->rtm_type == RTN_LOCAL || route->rtm_type == RTN_BROADCAST || route->rtm_type == RTN_ANYCAST ||
         route->rtm_type == RTN_MULTICAST;
}

}  // namespace caisson::egress
