// The headers by which 2026-07-28 repeats parts of the body, so that proxies can route without reading it. What they
// say must be what the body says: a proxy that decides by the header and a server that acts on the body would otherwise
// be two different requests.
#pragma once

#include <optional>

#include "mcp/http_request.h"
#include "mcp/message.h"

namespace caisson::mcp {

/// The value of a header after the decoding of `=?base64?...?=`; nothing if that is malformed.
std::optional<std::string> decodeHeaderValue(std::string_view value);

/// The first disagreement between headers and body. `tools` is the list of tools, for parameters that are mirrored
/// (`x-mcp-header`).
std::optional<RpcError> checkHeaders(const HttpRequest& request, const Message& message, const Json& tools);

}  // namespace caisson::mcp
