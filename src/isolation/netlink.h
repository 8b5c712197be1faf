// Builds the netlink messages that set up a sandbox's egress.
//
// The parent builds them before the clone; the child only sends them. `local default dev lo` delivers every address
// inside the sandbox; the packet filter redirects TCP to one listener and rejects all other packets with an error. DNS
// and loopback are exempt from both. Neither is the security boundary: that is the network namespace, which has no
// other interface.
#pragma once

#include <cstdint>
#include <vector>

namespace caisson::isolation {

/// Several consecutive netlink messages, and how many are acknowledged.
struct NetlinkBatch {
  std::vector<std::uint8_t> bytes;
  std::uint32_t acknowledged = 0;
};

inline constexpr std::uint16_t kProxyPort = 3128, kCapturePort = 3129, kDnsPort = 53;
inline constexpr std::uint16_t kLogGroup = 1;

/// `local default dev lo` for one family, and a non-loopback address on lo: libc queries a family's names only if there
/// is one (AI_ADDRCONFIG).
NetlinkBatch localRoute(bool v6);
/// The packet filter, as one atomic transaction.
NetlinkBatch packetFilter();
/// Delivers packets that the filter blocks to the socket that sends this message.
NetlinkBatch packetLog();
/// Without a packet filter: routing rules that reject UDP (except DNS) and ICMP at once, for one family.
NetlinkBatch refusingRules(bool v6);

}  // namespace caisson::isolation
