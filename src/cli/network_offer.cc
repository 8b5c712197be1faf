#include "cli/network_offer.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "approval/store.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/run_report.h"
#include "policy/model.h"
#include "policy/network_client.h"

namespace caisson::cli {
namespace {

/// Nothing if the sandbox has a network, or the user chose that it has none.
std::optional<policy::NetworkClient> clientWithoutNetwork(const Arguments& arguments, const Request& request) {
  const policy::Policy& policy = request.policy.model();
  if (policy.network.mode != policy::NetworkMode::none || policy.isolation.level == policy::Level::none ||
      policy.isolation.tier == policy::Tier::landlock)
    return std::nullopt;
  if (std::ranges::any_of(arguments.given, [](const Given& given) { return given.option->name == "net"; }))
    return std::nullopt;
  if (arguments.has(kResultJson) || arguments.has(kQuiet)) return std::nullopt;  // the result has the hint
  return policy::networkClient(request.command);
}

std::string questionFor(const policy::NetworkClient& client) {
  std::string hosts;
  for (const std::string& host : client.hosts) hosts += (hosts.empty() ? "" : ", ") + host;
  return "caisson: `" + client.sign + "` uses the network, and this sandbox has none.\n  " +
         (hosts.empty()
              ? "Give it the network through caisson's filter? You are asked about each host. [y/N] "
              : "Let it reach " + hosts + " through caisson's filter? You are asked about other hosts. [y/N] ");
}

}  // namespace

Result<void> offerNetwork(const Arguments& arguments, Request& request) {
  const auto client = clientWithoutNetwork(arguments, request);
  if (!client) return {};
  // A declared tool has the network that its owner approved.
  if (!request.tool.empty() || !request.interactive || ::isatty(STDERR_FILENO) != 1) {
    tell(policy::describeNetworkNeed(*client));
    return {};
  }
  const bool yes = askOwner(questionFor(*client));
  if (auto recorded = approval::recordAnswer("net:proxy", "terminal", yes); !recorded) return recorded;
  if (!yes) return {};
  auto changed = request.policy.set("network.mode", "proxy");
  for (const std::string& host : client->hosts) {
    if (changed) changed = request.policy.append("network.allowed_hosts", host);
  }
  return changed;
}

std::string offeredBefore(const Arguments& arguments, const Request& request) {
  const auto client = clientWithoutNetwork(arguments, request);
  return client ? policy::describeNetworkNeed(*client) : std::string();
}

}  // namespace caisson::cli
