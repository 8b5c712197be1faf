// The headers in which 2026-07-28 repeats parts of the body, so that proxies can route without parsing it. They must
// match the body: otherwise a proxy that decides by the header and a server that acts on the body would see different
// requests.
#pragma once

#include <optional>

#include "http/message.h"
#include "mcp/protocol/message.h"

namespace caisson::mcp {

/// Decodes the `=?base64?...?=` form of a header value; nothing if it is malformed. Any other value is returned as it
/// is.
std::optional<std::string> decodeHeaderValue(std::string_view value);

/// Returns the first header that is missing or does not match the body. `tools` is the list of tools, for mirrored
/// parameters (`x-mcp-header`).
std::optional<RpcError> checkHeaders(const http::RequestHead& request, const Message& message, const Json& tools);

}  // namespace caisson::mcp
