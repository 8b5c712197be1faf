// The messages that give a sandbox its egress, as the kernel's netlink reads them.
//
// Built by the parent before the clone: the child only sends them. With `local default dev lo` every address is
// delivered inside the sandbox; the packet filter sends all TCP to one listener and refuses everything else loudly.
// Neither is a boundary: that is the network namespace, which has no other interface.
#pragma once

#include <cstdint>
#include <vector>

namespace caisson::isolation {

/// Several netlink messages, one after another, and how many of them are acknowledged.
struct NetlinkBatch {
  std::vector<std::uint8_t> bytes;
  std::uint32_t acknowledged = 0;
};

inline constexpr std::uint16_t kProxyPort = 3128, kCapturePort = 3129, kDnsPort = 53;
inline constexpr std::uint16_t kLogGroup = 1;

/// `local default dev lo`, for one family, and an address on lo that is not loopback: libc asks for a family's names
/// only where it sees one (AI_ADDRCONFIG).
NetlinkBatch localRoute(bool v6);
/// The packet filter: one transaction, all or nothing.
NetlinkBatch packetFilter();
/// Sends what the filter refuses to the socket that sends this.
NetlinkBatch packetLog();
/// Without a packet filter: routing rules that refuse UDP (but for DNS) and ICMP at once, for one family.
NetlinkBatch refusingRules(bool v6);

}  // namespace caisson::isolation
