// Previews: a server in a sandbox, seen by a browser under a name that only it has.
//
// PORT-ID.localhost is another origin than the API and than every other sandbox, so its pages cannot read or send
// anything there. The id is random: who knows the address may see the page. Only published ports are shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace caisson::server {

struct PreviewName {
  std::uint16_t port = 0;
  std::string sandbox;
};

/// Parses "8000-cs-abc.localhost". `any_domain`: the part after the first label is not checked.
std::optional<PreviewName> parsePreviewName(std::string_view host, bool any_domain);

/// The request for the sandbox's server: without cookies and credentials of this one, and without hop-by-hop headers.
http::ProxyBody makePreview(const http::RequestHead& head, std::uint16_t host_port);

}  // namespace caisson::server
