// Result objects of the protocol.
#pragma once

#include <string>
#include <string_view>

#include "mcp/server/features.h"

namespace caisson::mcp {

inline Json textContent(std::string_view text) { return {{"type", "text"}, {"text", text}}; }

/// A tool result with one text.
inline Json textResult(std::string_view text) { return {{"content", Json::array({textContent(text)})}}; }

/// A tool failure, worded so that the model can act on it.
inline Json errorResult(std::string_view text) {
  Json result = textResult(text);
  result["isError"] = true;
  return result;
}

/// The content of a resource; not cacheable, since sandboxes change.
inline Json resourceResult(const Call& call, Json content) {
  Json result{{"contents", Json::array({std::move(content)})}};
  if (call.revision == ProtocolRevision::modern) {
    result["ttlMs"] = 0;
    result["cacheScope"] = "private";
  }
  return result;
}

/// 2026-07-28 has no separate error code for it.
inline RpcError resourceNotFound(const Call& call, const std::string& uri,
                                 std::string_view reason = "resource not found") {
  return {call.revision == ProtocolRevision::modern ? code::kInvalidParams : code::kResourceNotFound,
          std::string(reason),
          {{"uri", uri}}};
}

}  // namespace caisson::mcp
