#include "server/preview.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "server/app.h"

namespace caisson::server {
namespace {

/// Headers that are not passed on: they concern this connection, or are secrets of this server's clients.
bool isDropped(std::string_view name) {
  static constexpr std::string_view kDropped[] = {
      "connection", "keep-alive",      "proxy-connection", "transfer-encoding", "content-length",      "te",
      "trailer",    "expect",          "cookie",           "authorization",     "proxy-authorization", "x-caisson-csrf",
      "upgrade",    "x-forwarded-for", "forwarded",        "x-forwarded-host",  "x-forwarded-proto"};
  return std::find(std::begin(kDropped), std::end(kDropped), name) != std::end(kDropped);
}

}  // namespace

std::optional<PreviewName> parsePreviewName(std::string_view host, bool any_domain) {
  constexpr std::string_view kSuffix = ".localhost";
  const std::size_t dot = host.find('.');
  if (dot == std::string_view::npos || (!any_domain && host.substr(dot) != kSuffix)) return std::nullopt;
  const std::string_view label = host.substr(0, dot);
  const std::size_t dash = label.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  PreviewName name;
  const auto [end, problem] = std::from_chars(label.data(), label.data() + dash, name.port);
  if (problem != std::errc() || end != label.data() + dash || name.port == 0) return std::nullopt;
  name.sandbox = label.substr(dash + 1);
  return name;
}

http::ProxyBody makePreview(const http::RequestHead& head, std::uint16_t host_port) {
  http::ProxyBody body{.port = host_port, .target = head.target.text};
  for (const auto& [name, value] : head.headers)
    if (!isDropped(name)) body.request_headers.emplace_back(name, value);
  if (head.upgrades) {
    body.request_headers.emplace_back("Connection", "Upgrade");
    body.request_headers.emplace_back("Upgrade", "websocket");
  }
  // Cookies would reach other ports of the same name, and a policy of the page could not be trusted anyway.
  body.dropped_response = {
      "set-cookie", "set-cookie2",    "strict-transport-security", "service-worker-allowed", "clear-site-data",
      "alt-svc",    "public-key-pins"};
  body.response_headers = {{"X-Content-Type-Options", "nosniff"},
                           {"Referrer-Policy", "no-referrer"},
                           {"Cross-Origin-Resource-Policy", "same-origin"}};
  return body;
}

std::optional<http::Admission> App::admitPreview(const http::RequestHead& head) {
  const bool separate = options_.preview_listener == head.peer.listener;
  const std::string* host = head.header("host");
  const auto authority = host == nullptr ? std::nullopt : http::parseAuthority(*host);
  auto name = authority ? parsePreviewName(authority->host, separate) : std::nullopt;
  if (!name && !separate) return std::nullopt;
  if (!name) return refuse(head, {}, "preview", problem(404, "not_found", "previews are at PORT-ID.HOST"));
  // Before anything is looked up: the id is all that protects a preview, so nothing may depend on a part of it.
  if (!service::isSandboxId(name->sandbox))
    return refuse(head, {}, "preview", problem(404, "not_found", "no such preview"));
  auto admitted = std::make_shared<Admitted>();
  admitted->slot = previews_.take(name->sandbox, kPreviewsPerSandbox);
  if (!admitted->slot)
    return refuse(head, {}, "preview", problem(429, "too_many_requests", "too many requests to this sandbox's ports"));
  admitted->preview = *std::move(name);
  constexpr std::uint64_t kMaxBody = std::uint64_t{1} << 40U;
  const std::string sandbox = admitted->preview->sandbox;
  return http::Admission{.body_limit = kMaxBody,
                         .stream_body = true,
                         .lane = http::Lane::preview,
                         .caller = sandbox,
                         .context = std::move(admitted)};
}

http::Response App::preview(http::Request& request, Admitted& admitted) {
  const PreviewName& name = *admitted.preview;
  const service::Principal visitor{.name = "preview"};
  const auto missing = [&](http::Response response) {
    noteRefusal(request.head, visitor, "preview", name.sandbox, response);
    return response;
  };
  // Before anything is recorded: anyone can send names of sandboxes that do not exist.
  const service::Principal owner{.id = "owner", .name = "preview", .owner = true};
  auto sandbox = sandboxes_->find(owner, name.sandbox);
  if (!sandbox) return missing(problem(404, "not_found", "no such preview"));
  const auto ports = sandboxes_->with(**sandbox, [](Session& session) { return session.openPorts(); });
  if (!ports) return missing(problemOf(ports.error()));
  const auto open = std::find_if(ports->begin(), ports->end(),
                                 [&](const OpenPort& one) { return one.port == name.port && !one.inward; });
  if (open == ports->end())
    return missing(problem(404, "not_found", "this port is not published", "POST /v1/sandboxes/ID/ports"));
  auto recorded = trail_.recordVisit(recordOf(request.head, visitor, "preview", name.sandbox));
  if (!recorded) return notRecorded(recorded.error());
  return {.body = makePreview(request.head, open->host_port)};
}

}  // namespace caisson::server
