// The tool with which a model requests a host. The user decides per host. The decision is in the approvals
// store; revoking it there closes the host.
#include <algorithm>

#include "approval/what.h"
#include "base/deceptive_text.h"
#include "base/utf8.h"
#include "egress/address.h"
#include "egress/rules.h"
#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"
#include "policy/profiles/presets.h"
#include "policy/rules/network_client.h"

namespace caisson::mcp {
namespace {

constexpr Parameter kNetworkParameters[] = {
    kSandboxId,
    {.name = "host",
     .required = true,
     .description = "A host name such as pypi.org, one with a port such as db.example.com:5432, or *.example.com for "
                    "its subdomains. Without a port: 80 and 443."},
    {.name = "action",
     .description = "allow (default): ask the user to open it; close: give it up again.",
     .choices = "allow|close"},
    {.name = "reason", .description = "Why it is needed, in a few words: the user reads it."},
    kStop,
};

/// Names are case-insensitive; approvals store the lower-case form.
std::string lowerCase(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// Whether the host stays blocked even if the user allows it, so that the user must not be asked.
bool staysBlocked(const std::string& host) {
  const auto pattern = egress::parsePattern(host);
  if (!pattern) return false;
  if (egress::isMetadataName(pattern->host.name)) return true;
  if (!pattern->host.address) return false;
  const std::string_view range = egress::blockedRange(*pattern->host.address);
  return !range.empty() && !egress::mayBeExcepted(range);
}

std::string messageFor(const SessionInfo& info, const std::string& host, const std::string& reason) {
  constexpr std::size_t kMaxReason = 200;
  std::string text =
      "Let a sandbox reach " + host + " over the network?\nCommands in it can send there whatever they see";
  if (!info.workspace.empty()) text += ", all of " + info.workspace + " included";
  text += ".";
  // The model's reason comes last, on its own line, and is marked as such: it is a claim, not a fact. As a JSON string
  // it cannot end its own quotes.
  std::string words = reason.substr(0, kMaxReason);
  while (!isUtf8(words)) words.pop_back();  // cut inside a character
  if (!words.empty()) text += "\nThe model's own words, not checked: " + Json(words).dump();
  return text;
}

Outcome describe(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, const std::string& host, bool allowed,
                 bool started_anew) {
  const auto info = sandboxes.with(sandbox, [](Session& session) { return session.info(); });
  if (!info) return failure(call, info.error());
  Json value{{"sandbox_id", sandbox.id()},
             {"host", host},
             {"allowed", allowed},
             {"network", info->network},
             {"allowed_hosts", info->allowed_hosts}};
  if (started_anew)
    value["note"] =
        "The sandbox got its network and starts anew with the next command: /tmp and /home/sandbox are empty.";
  return structuredResult(call, std::move(value));
}

Outcome network(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const std::string host = lowerCase(arguments.text("host"));
  const std::string what = "host:" + host;
  if (!approval::checkWhat(what))
    return errorResult(
        "`host` must be a name or address, with or without :port; * alone is not possible, and names "
        "beyond ASCII are written as xn--...");
  if (arguments.text("action") == "close") {
    const auto closed = sandboxes.with(**sandbox, [&](Session& session) { return session.closeHost(host); });
    if (!closed) return failure(call, closed.error());
    return describe(sandboxes, call, **sandbox, host, false, false);
  }
  if (staysBlocked(host)) return errorResult(host + " stays blocked whatever is allowed");
  const auto info = sandboxes.with(**sandbox, [](Session& session) -> Result<SessionInfo> {
    if (auto reviewed = session.reviewHosts(); !reviewed) return std::unexpected(reviewed.error());
    return session.info();
  });
  if (!info) return failure(call, info.error());
  if (std::ranges::find(info->allowed_hosts, host) != info->allowed_hosts.end() && info->network == "proxy")
    return describe(sandboxes, call, **sandbox, host, true, false);
  const std::string reason = arguments.text("reason");
  if (!isReadable(reason) || !isReadable(info->workspace))
    return errorResult("`reason` contains characters that hide what they are");
  ApprovalOutcome approved = obtainApproval(
      call, {.what = what, .sandbox = (*sandbox)->id(), .message = messageFor(*info, host, reason), .once = false},
      sandboxes.deniedRequests());
  if (auto* needs = std::get_if<NeedsInput>(&approved)) return std::move(*needs);
  if (const auto* error = std::get_if<Error>(&approved)) return failure(call, *error);
  // An approval for one use is consumed by this sandbox; any other can be revoked.
  const bool while_approved = std::get<approval::Approval>(approved).scope != approval::Scope::once;
  if (auto opened = sandboxes.openHost(*sandbox, host, while_approved, whenBusy(arguments)); !opened)
    return failure(call, opened.error());
  return describe(sandboxes, call, **sandbox, host, true, info->network == "none");
}

/// Opens every host that the user approved; the first error ends it. An approval for one use is consumed by this
/// sandbox; any other can be revoked.
Result<void> openAll(Sandboxes& sandboxes, const SandboxPointer& sandbox, const std::vector<std::string>& hosts,
                     const std::vector<approval::Approval>& approvals) {
  for (std::size_t at = 0; at < hosts.size(); ++at) {
    const bool while_approved = approvals[at].scope != approval::Scope::once;
    if (auto opened = sandboxes.openHost(sandbox, hosts[at], while_approved, WhenBusy::refuse); !opened) return opened;
  }
  return {};
}

}  // namespace

std::optional<NeedsInput> offerNetwork(Sandboxes& sandboxes, const Call& call, const SandboxPointer& sandbox,
                                       const std::vector<std::string>& command, std::string& note) {
  if (sandboxes.settings().bounds.fixesNetwork()) return std::nullopt;
  const auto client = policy::networkClient(command);
  if (!client || client->hosts.empty() || sandboxes.declined(sandbox->id(), client->sign)) return std::nullopt;
  const auto info = sandboxes.with(*sandbox, [](Session& session) { return session.info(); });
  if (!info || info->network != "none" || !isReadable(info->workspace)) return std::nullopt;
  const std::vector<std::string> hosts = policy::expandPresets(client->hosts);
  std::vector<ApprovalRequest> requests;
  for (const std::string& host : hosts) {
    if (!approval::checkWhat("host:" + host)) return std::nullopt;
    requests.push_back(
        {.what = "host:" + host,
         .sandbox = sandbox->id(),
         .message = messageFor(*info, host, "") + "\nThe command `" + client->sign +
                    "` uses the network. If you allow it, the sandbox starts anew: files in its /tmp and "
                    "home are lost.",
         .once = false});
  }
  AllApproved approved = obtainAll(call, requests, sandboxes.deniedRequests());
  if (auto* needs = std::get_if<NeedsInput>(&approved)) return std::move(*needs);
  if (std::holds_alternative<Error>(approved)) {
    const bool answered = call.state.has_value();
    if (answered) sandboxes.decline(sandbox->id(), client->sign);
    note = "`" + client->sign + "` uses the network, and this sandbox has none: " +
           (answered ? "the user did not allow it" : "ask the user with sandbox_network");
    return std::nullopt;
  }
  if (const auto opened = openAll(sandboxes, sandbox, hosts, std::get<0>(approved)); !opened) {
    note = "the network was allowed and could not be opened: " + opened.error().message();
    return std::nullopt;
  }
  note = "The user allowed the network, and the sandbox started anew: its /tmp and /home/sandbox were emptied.";
  return std::nullopt;
}

constinit const Tool kNetworkTool{
    .name = "sandbox_network",
    .title = "Ask for a host on the network",
    .description =
        "Sandboxes have no network. With this the user is asked to let one of them reach one host; once allowed, every "
        "program in it reaches that host and no other. The first host starts the sandbox anew: /workspace stays, /tmp "
        "and running processes do not (see stop_processes). The user may take it back at any time. Private and "
        "local addresses are never reachable.",
    .parameters = kNetworkParameters,
    .output = R"("sandbox_id":{"type":"string"},"host":{"type":"string"},"allowed":{"type":"boolean"},
      "network":{"type":"string"},"allowed_hosts":{"type":"array","items":{"type":"string"}},
      "note":{"type":"string"})",
    .behaviour = {.destructive = true, .idempotent = true, .open_world = true},
    .perform = network,
};

}  // namespace caisson::mcp
