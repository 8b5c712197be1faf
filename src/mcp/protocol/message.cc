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

/// Finds the id of a request without building its tree: the message may be too deep or hold too many values for that.
class IdFinder final : public nlohmann::json_sax<Json> {
 public:
  /// The id; null if the message is not a request, or does not have exactly one usable id.
  [[nodiscard]] Json found() const { return methods_ == 1 && ids_ == 1 && usableId(id_) ? id_ : Json(); }

  bool null() override { return take(Json()); }
  bool boolean(bool /*value*/) override { return take(Json()); }
  bool number_integer(number_integer_t value) override { return take(value); }
  bool number_unsigned(number_unsigned_t value) override { return take(value); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return take(Json()); }
  bool string(string_t& value) override { return take(at_id_ && value.size() <= kMaxTextId ? Json(value) : Json()); }
  bool binary(binary_t& /*value*/) override { return take(Json()); }
  bool start_object(std::size_t /*size*/) override { return begin(depth_ == 0); }
  bool end_object() override { return end(); }
  bool start_array(std::size_t /*size*/) override { return begin(depth_ > 0); }  // a batch has no id
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    at_id_ = depth_ == 1 && name == "id";
    if (at_id_) ++ids_;
    if (depth_ == 1 && name == "method") ++methods_;
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return false;
  }

 private:
  bool begin(bool allowed_at_top) {
    at_id_ = false;
    return depth_++ > 0 || allowed_at_top;
  }
  bool end() {
    --depth_;
    return true;
  }
  bool take(Json value) {
    if (at_id_) id_ = std::move(value);
    at_id_ = false;
    return true;
  }

  std::size_t depth_ = 0, ids_ = 0, methods_ = 0;
  bool at_id_ = false;
  Json id_;
};

}  // namespace

Malformed unreadable(std::string_view text, std::string reason) {
  IdFinder finder;
  const bool valid = Json::sax_parse(text.begin(), text.end(), &finder);
  Json id = valid ? finder.found() : Json();
  const int number = id.is_null() ? code::kParse : code::kInvalidRequest;
  return {std::move(id), {number, std::move(reason), Json()}};
}

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
