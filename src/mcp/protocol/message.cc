#include "mcp/protocol/message.h"

#include <utility>

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxTextId = 1024;

bool usableId(const Json& id) {
  if (id.is_string()) return id.get_ref<const std::string&>().size() <= kMaxTextId;
  return id.is_number_integer();
}

Malformed malformed(Json id, std::string reason) {
  return {usableId(id) ? std::move(id) : Json(), {code::kInvalidRequest, std::move(reason), Json()}};
}

std::expected<Message, Malformed> decodeResponse(Json& value, Json id) {
  if (!usableId(id)) return std::unexpected(malformed(Json(), "a response needs the id of its request"));
  const bool has_result = value.contains("result");
  const bool has_error = value.contains("error");
  if (has_result == has_error)
    return std::unexpected(malformed(Json(), "a message has a method, or either a result or an error"));
  Message message{.kind = Message::Kind::response, .id = std::move(id)};
  if (has_result) {
    message.result = std::move(value["result"]);
  } else {
    message.error = std::move(value["error"]);
    if (!message.error.is_object()) message.error = Json{{"code", code::kInternal}, {"message", "unreadable error"}};
  }
  return message;
}

}  // namespace

std::expected<Message, Malformed> decodeMessage(Json value) {
  if (value.is_array())
    return std::unexpected(malformed(Json(), "batches are not supported; send one message at a time"));
  if (!value.is_object()) return std::unexpected(malformed(Json(), "a message is a JSON object"));
  Json id = value.contains("id") ? std::move(value["id"]) : Json();
  if (textAt(value, "jsonrpc") != "2.0")
    return std::unexpected(malformed(std::move(id), "\"jsonrpc\" must be \"2.0\""));
  if (!value.contains("method")) return decodeResponse(value, std::move(id));

  Message message;
  if (!value["method"].is_string()) return std::unexpected(malformed(std::move(id), "\"method\" must be a string"));
  message.method = std::move(value["method"].get_ref<std::string&>());
  if (value.contains("params")) {
    if (!value["params"].is_object()) return std::unexpected(malformed(std::move(id), "\"params\" must be an object"));
    message.params = std::move(value["params"]);
  }
  if (!value.contains("id")) {
    message.kind = Message::Kind::notification;
    return message;
  }
  if (!usableId(id)) return std::unexpected(malformed(Json(), "\"id\" must be a string or an integer"));
  message.id = std::move(id);
  return message;
}

Json makeResult(const Json& id, Json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

Json makeError(const Json& id, const RpcError& error) {
  Json body{{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) body["data"] = error.data;
  Json message{{"jsonrpc", "2.0"}, {"error", std::move(body)}};
  if (!id.is_null()) message["id"] = id;
  return message;
}

Json makeNotification(std::string_view method, Json params) {
  Json message{{"jsonrpc", "2.0"}, {"method", method}};
  if (!params.is_null()) message["params"] = std::move(params);
  return message;
}

Json makeRequest(const Json& id, std::string_view method, Json params) {
  Json message = makeNotification(method, std::move(params));
  message["id"] = id;
  return message;
}

bool isResponse(const Json& message) { return !message.contains("method"); }

}  // namespace caisson::mcp
