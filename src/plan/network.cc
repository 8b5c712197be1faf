#include "plan/network.h"

#include <algorithm>
#include <charconv>

#include "policy/presets.h"

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

}  // namespace

Result<void> planNetwork(const policy::Policy& policy, Plan& plan) {
  const policy::Network& network = policy.network;
  plan.layers["network"] = "none: its own loopback only";
  if (network.mode == policy::NetworkMode::host) {
    if (plan.tier == policy::Tier::landlock) {
      return fail(plainError(Stage::plan, "plan", "network.mode", "the landlock tier has no sockets at all",
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
  if (network.mode != policy::NetworkMode::proxy) return {};
  if (plan.level == policy::Level::none || plan.tier != policy::Tier::namespaces) {
    return fail(plainError(Stage::plan, "plan", "network.mode",
                           "the egress filter needs a network namespace, which this level and tier do without",
                           "use level process or full without isolation.tier = \"landlock\""));
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
