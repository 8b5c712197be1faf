// Plans a network mode.
#pragma once

#include <chrono>

#include "plan/plan.h"

namespace caisson::plan {

/// Sets what the network mode needs: `proxy`: plan.egress; `host`: no network namespace; and the ports between the
/// sandbox and the host's loopback. An error if the level or tier cannot have it.
Result<void> planNetwork(const policy::Policy& policy, Plan& plan);

/// Whether this port inside belongs to the egress in mode proxy: its proxy, capture and name server. Opening it to
/// others would give them the sandbox's network and credentials.
bool isEgressPort(std::uint16_t port);
/// Why it can't be used.
std::string takenByEgress(std::uint16_t port);

/// network.idle_seconds, for connections to host_ports.
std::chrono::seconds idleLimit(const policy::Network& network);

/// Expands ports and ranges, sorted and without repetition. Stops at `most` + 1 ports, which shows that there are more.
std::vector<std::uint16_t> expandPorts(const std::vector<std::string>& entries, std::size_t most);

/// Adds variables that name the proxy (http_proxy ...); connections of programs that ignore them are captured.
void addProxyVariables(std::map<std::string, std::string>& environment);

/// The content of the sandbox's /etc/resolv.conf; empty: show the host's.
std::string resolverFile(const policy::Policy& policy);

}  // namespace caisson::plan
