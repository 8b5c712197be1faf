#include "plan/network.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "policy/profiles/presets.h"

namespace caisson::plan {
namespace {

std::pair<std::uint16_t, std::uint16_t> portsOf(const std::string& text) {
  const std::size_t dash = text.find('-');
  std::uint16_t first = 0, last = 0;
  std::from_chars(text.data(), text.data() + std::min(dash, text.size()), first);
  last = first;
  if (dash != std::string::npos) std::from_chars(text.data() + dash + 1, text.data() + text.size(), last);
  return {first, last};
}

/// The port of "example.org:8443", or 0.
std::uint16_t portOfPattern(const std::string& pattern) {
  const std::size_t bracket = pattern.rfind(']');
  const std::size_t colon = pattern.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon == std::string::npos ||
      (bracket == std::string::npos && pattern.find(':', colon + 1) != std::string::npos)) {
    return 0;
  }
  return portsOf(pattern.substr(colon + 1)).first;
}

/// Ports inside that belong to the egress in mode proxy: its proxy, capture and name server.
constexpr std::uint16_t kEgressPorts[] = {53, 3128, 3129};
constexpr std::string_view kOtherPort = "use another port, or --net none";
/// Bounded, since each port costs a pair of sockets at every launch.
constexpr std::size_t kMaxPorts = 32;

Result<std::vector<std::uint16_t>> planPortList(std::string_view key, const std::vector<std::string>& entries,
                                                const policy::Policy& policy, const Plan& plan) {
  std::vector<std::uint16_t> ports = expandPorts(entries, kMaxPorts);
  if (ports.empty()) return ports;
  if (plan.tier == policy::Tier::landlock) {
    return fail(plainError(Stage::plan, "plan", key, "the landlock tier shares the host's ports, so it offers none",
                           "use level process or full without isolation.tier = \"landlock\""));
  }
  if (ports.size() > kMaxPorts) {
    return fail(plainError(Stage::plan, "plan", key, "more than 32 ports", "name only the ports that are needed"));
  }
  if (policy.network.mode != policy::NetworkMode::proxy) return ports;
  for (const std::uint16_t port : ports) {
    if (isEgressPort(port)) return fail(plainError(Stage::plan, "plan", key, takenByEgress(port), kOtherPort));
  }
  return ports;
}

std::string listPorts(const std::vector<std::uint16_t>& ports) {
  std::string text;
  for (const std::uint16_t port : ports) text += (text.empty() ? "" : ", ") + std::to_string(port);
  return text;
}

Result<void> planPorts(const policy::Policy& policy, Plan& plan) {
  const policy::Network& network = policy.network;
  // Without a network namespace the program uses the host's loopback itself.
  const bool separate = plan.namespaces.network || plan.tier == policy::Tier::landlock;
  if (!separate || network.mode == policy::NetworkMode::host) return {};
  auto host_ports = planPortList("network.host_ports", network.host_ports, policy, plan);
  if (!host_ports) return fail(host_ports.error());
  auto published = planPortList("network.published_ports", network.published_ports, policy, plan);
  if (!published) return fail(published.error());
  for (const std::uint16_t port : *published) {
    if (std::ranges::find(*host_ports, port) == host_ports->end()) continue;
    return fail(plainError(Stage::plan, "plan", "network.published_ports",
                           "port " + std::to_string(port) + " is also in network.host_ports, so it is taken inside",
                           "let the program listen on another port"));
  }
  plan.host_ports = std::move(*host_ports);
  plan.published_ports = std::move(*published);
  plan.max_connections = network.max_connections;
  plan.idle_limit = idleLimit(network);
  if (!plan.host_ports.empty()) plan.layers["host_ports"] = listPorts(plan.host_ports) + " of 127.0.0.1 on the host";
  if (!plan.published_ports.empty()) {
    plan.layers["published_ports"] = listPorts(plan.published_ports) + " at 127.0.0.1 on the host";
  }
  return {};
}

}  // namespace

bool isEgressPort(std::uint16_t port) { return std::ranges::find(kEgressPorts, port) != std::end(kEgressPorts); }

std::chrono::seconds idleLimit(const policy::Network& network) {
  constexpr double kMost = 1e9;
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(std::min(network.idle_seconds, kMost))));
}

std::string takenByEgress(std::uint16_t port) {
  return "port " + std::to_string(port) + " inside belongs to the proxy of network mode `proxy`";
}

std::vector<std::uint16_t> expandPorts(const std::vector<std::string>& entries, std::size_t most) {
  std::set<std::uint16_t> ports;
  for (const std::string& entry : entries) {
    const auto [first, last] = portsOf(entry);
    for (std::uint32_t port = first; port != 0 && port <= last && ports.size() <= most; ++port) {
      ports.insert(static_cast<std::uint16_t>(port));
    }
  }
  return {ports.begin(), ports.end()};
}

Result<void> planNetwork(const policy::Policy& policy, Plan& plan) {
  const policy::Network& network = policy.network;
  plan.layers["network"] = "none: its own loopback only";
  if (network.mode == policy::NetworkMode::host) {
    if (plan.tier == policy::Tier::landlock) {
      return fail(plainError(Stage::plan, "plan", "network.mode",
                             "without a network namespace the landlock tier can only open no network or the proxy",
                             "use level process or full without isolation.tier = \"landlock\""));
    }
    plan.namespaces.network = false;
    plan.loopback = false;
    std::string& namespaces = plan.layers["namespaces"];
    if (const std::size_t at = namespaces.find(" network"); at != std::string::npos) namespaces.erase(at, 8);
    plan.layers["network"] = "host: everything that the caller can reach";
    plan.warnings.emplace_back("host network: the program reaches every host, this machine's own services included");
    return {};
  }
  if (auto planned = planPorts(policy, plan); !planned) return planned;
  if (network.mode != policy::NetworkMode::proxy) return {};
  if (plan.level == policy::Level::none) {
    return fail(plainError(Stage::plan, "plan", "network.mode",
                           "the egress filter needs a network namespace, which this level does without",
                           "use level process or full"));
  }
  const bool shared = plan.tier == policy::Tier::landlock;
  if (shared && !network.credentials.empty()) {
    return fail(
        plainError(Stage::plan, "plan", "network.credentials",
                   "the certificate of the credential broker needs a mount, which the landlock tier does without",
                   "remove the key, or use the tier `namespaces`"));
  }
  EgressPlan egress;
  egress.network = network;
  egress.network.allowed_hosts = policy::expandPresets(network.allowed_hosts);
  egress.network.denied_hosts = policy::expandPresets(network.denied_hosts);
  for (const std::string& entry : network.allowed_ports) egress.ports.push_back(portsOf(entry));
  for (const std::string& pattern : network.allowed_hosts) {
    if (const std::uint16_t port = portOfPattern(pattern); port != 0) egress.ports.emplace_back(port, port);
  }
  plan.egress = std::move(egress);
  plan.layers["network"] = "proxy: " + std::to_string(network.allowed_hosts.size()) +
                           (network.allowed_hosts.size() == 1 ? " host pattern" : " host patterns");
  if (shared) {
    plan.layers["network"] += ", only for programs that follow HTTP_PROXY and HTTPS_PROXY";
    plan.warnings.emplace_back(
        "landlock tier: only connections to the proxy work; no names, no UDP, no listening sockets, no local servers");
  }
  if (!network.upstream_proxy.empty()) plan.layers["network"] += ", through " + network.upstream_proxy;
  if (!network.credentials.empty()) {
    plan.layers["credentials"] = std::to_string(network.credentials.size()) + " added by the broker";
  }
  if (network.allowed_hosts.empty()) {
    plan.notices.emplace_back("network.allowed_hosts is empty: nothing can be reached (--allow-host PATTERN)");
  }
  return {};
}

void addProxyVariables(std::map<std::string, std::string>& environment) {
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}) {
    environment[name] = "http://127.0.0.1:3128";
  }
  for (const char* name : {"no_proxy", "NO_PROXY"}) environment[name] = "localhost,127.0.0.1,::1";
}

std::string resolverFile(const policy::Policy& policy) {
  if (policy.network.mode == policy::NetworkMode::host) return {};
  if (policy.network.mode == policy::NetworkMode::proxy) return "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n";
  return "# no network: nothing resolves here\n";
}

}  // namespace caisson::plan
