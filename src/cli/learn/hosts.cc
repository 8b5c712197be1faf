// Learn mode, network: proposes hosts that the egress denied, or that the payload tried to reach without any network.
#include <algorithm>

#include "cli/learn/draft.h"
#include "cli/safe_text.h"
#include "egress/address.h"
#include "egress/host_name.h"
#include "policy/decode/syntax.h"

namespace caisson::cli {
namespace {

void addOnce(std::vector<std::string>& list, const std::string& entry) {
  if (std::ranges::find(list, entry) == list.end()) list.push_back(entry);
}

/// Adds hosts that the egress denied because no pattern allows them. Always blocked hosts are only a remark.
void addRefused(Draft& draft, const RunResult& result, std::vector<std::string>& hosts) {
  for (const Denial& denial : result.denials) {
    if (!denial.operation.starts_with("network")) continue;
    const std::size_t colon = denial.object.rfind(':');
    const std::string host = denial.object.substr(0, colon);
    const bool listed = denial.rule == "no entry of network.allowed_hosts";
    if (!listed || policy::findFlaw(policy::Syntax::host_pattern, host)) {
      draft.refuse("refused: " + safeLine(denial.object) + " (" + denial.rule + "); " + denial.remedy);
    } else {
      addOnce(hosts, host);
    }
  }
}

/// Adds hosts tried in network mode `none`, taken from the program's DNS queries and connect addresses.
void addWanted(Draft& draft, const policy::Network& network, const RunResult& result, std::vector<std::string>& hosts,
               std::vector<std::string>& ports) {
  if (network.mode != policy::NetworkMode::none) return;
  for (const HostRequest& request : result.hosts) {
    const auto host = egress::canonicalHost(request.host);
    const std::string_view blocked = host && host->address ? egress::blockedRange(*host->address) : "";
    if (!host || !blocked.empty() || policy::findFlaw(policy::Syntax::host_pattern, request.host)) {
      draft.refuse("asked for, and no policy reaches it: " + safeLine(request.host) + " " + std::string(blocked));
      continue;
    }
    addOnce(hosts, request.host);
    if (request.port != 0) addOnce(ports, std::to_string(request.port));
  }
}

}  // namespace

void proposeHosts(Draft& draft, const policy::Network& network, const RunResult& result) {
  std::vector<std::string> hosts = network.allowed_hosts;
  std::vector<std::string> ports = network.allowed_ports;
  addRefused(draft, result, hosts);
  addWanted(draft, network, result, hosts, ports);
  if (hosts == network.allowed_hosts) return;
  if (network.mode == policy::NetworkMode::none) {
    draft.set("network.mode", "\"proxy\"", "hosts were asked for; the egress filter reaches those that are named");
  }
  draft.set("network.allowed_hosts", listOf(hosts), "hosts that were asked for");
  if (ports != network.allowed_ports) draft.set("network.allowed_ports", listOf(ports), "ports that were asked for");
}

}  // namespace caisson::cli
