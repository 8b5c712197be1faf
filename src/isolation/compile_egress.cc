// The sandbox's connection to its egress as flat data.
#include <algorithm>

#include "isolation/compile_parts.h"
#include "isolation/netlink.h"

namespace caisson::isolation {
namespace {

/// The permitted ports except those of the proxy and DNS, for a kernel without a packet filter to capture all of them.
/// Stops at kMaxEgressPorts + 1, which shows that there are more.
std::vector<std::uint16_t> permittedPorts(const plan::EgressPlan& egress) {
  std::vector<std::uint16_t> ports;
  for (const auto& [first, last] : egress.ports) {
    for (std::uint32_t port = first; port <= last && ports.size() <= kMaxEgressPorts; ++port) {
      const bool taken = port == kProxyPort || port == kDnsPort;
      const auto found = std::find(ports.begin(), ports.end(), port);
      if (!taken && found == ports.end()) ports.push_back(static_cast<std::uint16_t>(port));
    }
  }
  return ports;
}

}  // namespace

void compileEgress(const plan::Plan& plan, Arena& arena, Block& block) {
  block.egress.link = -1;
  if (!plan.egress) return;
  FlatEgress& out = block.egress;
  const auto keep = [&](const NetlinkBatch& batch) {
    std::uint8_t* copy = arena.array<std::uint8_t>(batch.bytes.size());
    std::copy(batch.bytes.begin(), batch.bytes.end(), copy);
    return FlatBatch{copy, static_cast<std::uint32_t>(batch.bytes.size()), batch.acknowledged};
  };
  out.on = true;
  out.use_filter = plan.egress->use_packet_filter;
  out.route4 = keep(localRoute(false));
  out.route6 = keep(localRoute(true));
  out.filter = keep(packetFilter());
  out.log = keep(packetLog());
  out.rules4 = keep(refusingRules(false));
  out.rules6 = keep(refusingRules(true));
  const std::vector<std::uint16_t> ports = permittedPorts(*plan.egress);
  out.too_many_ports = ports.size() > kMaxEgressPorts;
  out.port_count = static_cast<std::uint32_t>(std::min(ports.size(), kMaxEgressPorts));
  std::uint16_t* copy = arena.array<std::uint16_t>(out.port_count);
  std::copy_n(ports.begin(), out.port_count, copy);
  out.ports = copy;
  out.proxy_port = kProxyPort;
  out.capture_port = kCapturePort;
  out.dns_port = kDnsPort;
}

void compileHostPorts(const plan::Plan& plan, Arena& arena, Block& block) {
  const std::size_t count = std::min(plan.host_ports.size(), kMaxHostPorts);
  std::uint16_t* ports = arena.array<std::uint16_t>(count);
  std::copy_n(plan.host_ports.begin(), count, ports);
  block.host_ports = ports;
  block.host_port_count = static_cast<std::uint32_t>(count);
}

}  // namespace caisson::isolation
