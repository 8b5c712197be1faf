// JSON-RPC 2.0 messages: what came in, sorted and checked; what goes out, put together.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "mcp/json.h"

namespace caisson::mcp {

/// Error codes of JSON-RPC and of MCP. Others are not invented: what a tool could not do is a result with isError.
namespace code {
inline constexpr int kParse = -32700;
inline constexpr int kInvalidRequest = -32600;
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternal = -32603;
inline constexpr int kResourceNotFound = -32002;  ///< before 2026-07-28 only
inline constexpr int kHeaderMismatch = -32020;
inline constexpr int kMissingCapability = -32021;
inline constexpr int kUnsupportedVersion = -32022;
}  // namespace code

struct RpcError {
  int code = code::kInternal;
  std::string message;
  Json data;  ///< null: none
};

struct Message {
  enum class Kind : std::uint8_t { request, notification, response };
  Kind kind = Kind::request;
  Json id;             ///< a string or an integer; null for a notification
  std::string method;  ///< empty for a response
  Json params = Json::object();
  Json result;  ///< of a response
  Json error;   ///< of a response; null when it has a result
};

/// A message that is none. `id` is what could be read of it, else null.
struct Malformed {
  Json id;
  RpcError error;
};

/// Sorts one JSON value (not a batch). Checks the version mark, the id's type and the shape of params.
std::expected<Message, Malformed> decodeMessage(Json value);

Json makeResult(const Json& id, Json result);
/// An id that could not be read is left out: the schema of 2026-07-28 knows no null id.
Json makeError(const Json& id, const RpcError& error);
Json makeNotification(std::string_view method, Json params);
Json makeRequest(const Json& id, std::string_view method, Json params);

/// Whether a message that we send answers a request.
bool isResponse(const Json& message);

}  // namespace caisson::mcp
