// Ports, hosts and credentials of a sandbox.
#include <algorithm>
#include <charconv>

#include "policy/decode/syntax.h"
#include "server/app.h"
#include "server/describe.h"

namespace caisson::server {
namespace {

constexpr Field kPortFields[] = {{.name = "port",
                                  .type = FieldType::integer,
                                  .required = true,
                                  .description = "The port in the sandbox.",
                                  .least = 1,
                                  .most = 65535}};
constexpr Field kNetworkFields[] = {
    {.name = "action",
     .required = true,
     .description = "allow or deny a host from now on, or remove it from the allowed ones.",
     .choices = "allow,deny,remove"},
    {.name = "host", .required = true, .description = "A host pattern, with or without :PORT."},
    {.name = "stop",
     .type = FieldType::boolean,
     .description = "Kill running processes if the sandbox must restart for its first host."},
};

template <class Use>
http::Response onNetwork(Call& call, Use use) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  return use(**sandbox);
}

Json describePort(const Call& call, const OpenPort& port) {
  const std::string* host = call.request.head.header("host");
  const auto authority = host == nullptr ? std::nullopt : http::parseAuthority(*host);
  const std::string own_port =
      authority && !authority->port.empty() && !call.request.head.peer.uid ? ":" + authority->port : ":7080";
  return {{"port", port.port},
          {"host_port", port.host_port},
          {"preview_url", std::string(call.request.head.peer.tls ? "https" : "http") + "://" +
                              std::to_string(port.port) + "-" + call.id() + ".localhost" + own_port + "/"}};
}

http::Response listPorts(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    const auto ports = call.app.sandboxes().with(sandbox, [](Session& session) { return session.openPorts(); });
    if (!ports) return problemOf(ports.error());
    Json list = Json::array();
    for (const OpenPort& port : *ports)
      if (!port.inward) list.push_back(describePort(call, port));
    return jsonResponse(200, {{"ports", std::move(list)}});
  });
}

http::Response publishPort(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    const auto port = static_cast<std::uint16_t>(call.number("port", 0));
    const auto before = call.app.sandboxes().with(sandbox, [](Session& session) { return session.openPorts(); });
    for (const OpenPort& open : before ? *before : std::vector<OpenPort>{})
      if (open.port == port && !open.inward) return jsonResponse(200, describePort(call, open));
    // The host port is chosen by the kernel: a caller cannot take one that another program expects.
    const auto opened = call.app.sandboxes().with(sandbox, [&](Session& session) { return session.openPort(port); });
    if (!opened) return problemOf(opened.error());
    call.app.publish("port.published", sandbox, {{"port", port}});
    return jsonResponse(201, describePort(call, *opened));
  });
}

http::Response closePort(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    std::uint16_t port = 0;
    const std::string& text = call.path[1];
    const auto [end, flaw] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (flaw != std::errc() || end != text.data() + text.size()) return problem(404, "not_found", "no such port");
    const auto closed = call.app.sandboxes().with(sandbox, [&](Session& session) { return session.closePort(port); });
    if (!closed) return problem(404, "not_found", "this port is not published");
    return http::Response{.status = 204};
  });
}

http::Response getNetwork(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    const auto info = call.app.sandboxes().with(sandbox, [](Session& session) { return session.info(); });
    if (!info) return problemOf(info.error());
    return jsonResponse(200, {{"mode", info->network}, {"allowed_hosts", info->allowed_hosts}});
  });
}

/// Events repeat the host, so it must be one, and short.
bool isHost(const std::string& text) {
  constexpr std::size_t kMaxHost = 512;
  return text.size() <= kMaxHost && !policy::findFlaw(policy::Syntax::host_pattern, text);
}

http::Response changeNetwork(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    const std::string action = call.text("action"), host = call.text("host");
    if (!isHost(host))
      return problem(400, "invalid", "field \"host\": expected a name or address, with or without :PORT",
                     "write names beyond ASCII as xn--...");
    if (action == "remove") {
      const auto info = call.app.sandboxes().with(sandbox, [](Session& session) { return session.info(); });
      if (!info) return problemOf(info.error());
      if (std::ranges::find(info->allowed_hosts, host) == info->allowed_hosts.end()) return getNetwork(call);
    }
    if (action == "allow") {
      std::vector<service::PendingApproval> missing;
      const auto approved = call.app.inbox().require(call.caller, sandbox.id(), {"host:" + host}, missing);
      if (!approved) return problemOf(approved.error());
      if (!*approved) return approvalNeeded(call, missing);
    }
    // A token's host depends on the owner's approval, which can be revoked.
    const HostTerm term = call.caller.owner ? HostTerm::session : HostTerm::while_approved;
    const auto changed = call.app.sandboxes().with(sandbox, [&](Session& session) {
      if (action == "allow") return session.openHost(host, term, call.flag("stop") ? WhenBusy::stop : WhenBusy::refuse);
      return action == "deny" ? session.network(false, host) : session.closeHost(host);
    });
    sandbox.forgetHandles();
    if (!changed) return problemOf(changed.error());
    call.app.publish("network.changed", sandbox, {{"action", action}, {"host", host}});
    return getNetwork(call);
  });
}

http::Response listCredentials(Call& call) {
  return onNetwork(call, [&](service::Sandbox& sandbox) {
    const auto text = call.app.sandboxes().with(sandbox, [](Session& session) { return session.policyJson(); });
    if (!text) return problemOf(text.error());
    const auto policy = parseJson(*text);
    const Json* network = policy ? findObject(*policy, "network") : nullptr;
    const Json* credentials = network == nullptr ? nullptr : find(*network, "credentials");
    Json list = Json::array();
    for (const Json& one : credentials != nullptr && credentials->is_array() ? *credentials : Json::array())
      list.push_back({{"name", textAt(one, "name").value_or("")},
                      {"host", textAt(one, "host").value_or("")},
                      {"header", textAt(one, "header").value_or("")}});
    return jsonResponse(200, {{"credentials", std::move(list)}});
  });
}

constexpr Route kNetworkRoutes[] = {
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/ports",
     .operation = "listPorts",
     .tag = "network",
     .summary = "Published ports",
     .result = "PortList",
     .perform = listPorts},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/ports",
     .operation = "publishPort",
     .tag = "network",
     .summary = "Publish a port of the sandbox on the host's loopback interface",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kPortFields,
     .status = 201,
     .result = "Port",
     .lane = http::Lane::control,
     .perform = publishPort},
    {.method = "DELETE",
     .pattern = "/v1/sandboxes/{id}/ports/{port}",
     .operation = "closePort",
     .tag = "network",
     .summary = "Stop publishing a port",
     .access = Access::exec,
     .status = 204,
     .lane = http::Lane::control,
     .perform = closePort},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/network",
     .operation = "getNetwork",
     .tag = "network",
     .summary = "Network mode and allowed hosts",
     .result = "Network",
     .perform = getNetwork},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/network",
     .operation = "changeNetwork",
     .tag = "network",
     .summary = "Allow, deny or remove a host",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kNetworkFields,
     .result = "Network",
     .lane = http::Lane::transfer,
     .perform = changeNetwork},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/credentials",
     .operation = "listCredentials",
     .tag = "network",
     .summary = "Credentials that the broker adds to requests, without their values",
     .result = "CredentialList",
     .perform = listCredentials},
};

}  // namespace

std::span<const Route> networkRoutes() { return kNetworkRoutes; }

}  // namespace caisson::server
