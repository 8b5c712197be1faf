#include "cli/network_offer.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "approval/owner.h"
#include "approval/store.h"
#include "base/text.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/result/report.h"
#include "cli/safe_text.h"
#include "policy/model.h"
#include "policy/profiles/presets.h"
#include "policy/rules/network_client.h"

namespace caisson::cli {
namespace {

/// The network client that the command is, if the sandbox has no network. Nothing with `--net`, `--json` or
/// `--quiet`.
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

/// What a policy says about how names are resolved decides where the data goes.
std::string routeOf(const policy::Network& network) {
  std::string text;
  if (!network.dns_servers.empty())
    text += "  The policy chooses the name servers: " + safeLine(joined(network.dns_servers)) + "\n";
  if (!network.upstream_proxy.empty())
    text += "  The policy chooses a proxy: " + safeLine(network.upstream_proxy) + "\n";
  return text;
}

std::string questionFor(const policy::NetworkClient& client, const policy::Network& network) {
  const std::string hosts = joined(client.hosts);
  return "caisson: `" + client.sign + "` uses the network, and this sandbox has none.\n" + routeOf(network) + "  " +
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
    printNotice(policy::describeNetworkNeed(*client));
    return {};
  }
  const bool yes = askOwner(questionFor(*client, request.policy.model().network));
  if (auto recorded = approval::recordAnswer("net:proxy", "terminal", yes); !recorded) return recorded;
  if (!yes) return {};
  auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  policy::openNetwork(request.policy.model().network, std::move(owner->private_hosts));
  for (const std::string& host : client->hosts) {
    if (auto added = request.policy.append("network.allowed_hosts", host); !added) return added;
  }
  return {};
}

Result<std::string> offerSessionNetwork(Session& session, const std::vector<std::string>& command, bool may_ask) {
  const auto client = policy::networkClient(command);
  if (!client) return "";
  const auto info = session.info();
  if (!info || info->network != "none") return "";
  const std::vector<std::string> hosts = policy::expandPresets(client->hosts);
  if (hosts.empty() || !may_ask || ::isatty(STDERR_FILENO) != 1) {
    std::string notice = policy::describeNetworkNeed(*client, session.id());
    printNotice(notice);
    return notice;
  }
  const bool yes = askOwner(
      "caisson: `" + client->sign + "` uses the network, and this session has none.\n  Let it reach " + joined(hosts) +
      " through caisson's filter? The sandbox starts anew: its /tmp and home are emptied. [y/N] ");
  for (const std::string& host : hosts) {
    if (auto noted = approval::recordAnswer("host:" + host, "terminal", yes, session.id()); !noted)
      return fail(noted.error());
    if (!yes) continue;
    if (auto opened = session.openHost(host, HostTerm::session); !opened) return fail(opened.error());
  }
  return "";
}

std::string networkNoticeAlreadyShown(const Arguments& arguments, const Request& request) {
  const auto client = clientWithoutNetwork(arguments, request);
  return client ? policy::describeNetworkNeed(*client) : std::string();
}

}  // namespace caisson::cli
