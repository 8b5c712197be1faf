// JSON-RPC 2.0 messages: decodes and checks received ones, builds those to send.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "mcp/protocol/json.h"

namespace caisson::mcp {

/// Error codes of JSON-RPC and of MCP; no others are used. A tool's failure is a result with isError.
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

/// An invalid message. `id` is null if it could not be read.
struct Malformed {
  Json id;
  RpcError error;
};

/// Decodes one JSON value (not a batch). Checks the protocol version, the id's type and the type of params.
std::expected<Message, Malformed> decodeMessage(Json value);
/// The refusal of a text that parseJson() rejected. It has the id of the request if the text is valid JSON, so that the
/// client does not wait for a response.
Malformed unreadable(std::string_view text, std::string reason);

Json makeResult(const Json& id, Json result);
/// Omits an unreadable id: the schema of 2026-07-28 has no null id.
Json makeError(const Json& id, const RpcError& error);
Json makeNotification(std::string_view method, Json params);
Json makeRequest(const Json& id, std::string_view method, Json params);

/// Whether a message that we send answers a request.
bool isResponse(const Json& message);

}  // namespace caisson::mcp
