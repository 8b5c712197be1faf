#include "base/json_value.h"

#include <cstdint>
#include <nlohmann/json.hpp>

namespace caisson {
namespace {

using Json = nlohmann::ordered_json;

const Json& jsonAt(const void* value) { return *static_cast<const Json*>(value); }

std::string dumped(const void* value, int indent) {
  return jsonAt(value).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

struct JsonValue::Tree {
  Json root;
};

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  auto tree = std::make_shared<const Tree>(Json::parse(text, nullptr, false));
  if (tree->root.is_discarded()) return std::nullopt;
  const void* root = &tree->root;
  return JsonValue(std::move(tree), root);
}

bool JsonValue::isObject() const { return jsonAt(value_).is_object(); }
bool JsonValue::isArray() const { return jsonAt(value_).is_array(); }

std::optional<std::string> JsonValue::text() const {
  const auto* text = jsonAt(value_).get_ptr<const std::string*>();
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<std::int64_t> JsonValue::integer() const {
  const Json& value = jsonAt(value_);
  if (!value.is_number_integer()) return std::nullopt;
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
  return too_large ? std::nullopt : std::optional(value.get<std::int64_t>());
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::members() const {
  std::vector<std::pair<std::string, JsonValue>> list;
  if (!isObject()) return list;
  for (const auto& [key, value] : jsonAt(value_).items()) list.emplace_back(key, JsonValue(tree_, &value));
  return list;
}

std::vector<JsonValue> JsonValue::items() const {
  std::vector<JsonValue> list;
  if (!isArray()) return list;
  for (const Json& value : jsonAt(value_)) list.push_back(JsonValue(tree_, &value));
  return list;
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!isObject()) return std::nullopt;
  const auto found = jsonAt(value_).find(std::string(key));
  return found == jsonAt(value_).end() ? std::nullopt : std::optional(JsonValue(tree_, &*found));
}

std::optional<std::string> JsonValue::textAt(std::string_view key) const {
  const auto value = find(key);
  return value ? value->text() : std::nullopt;
}

std::optional<std::int64_t> JsonValue::integerAt(std::string_view key) const {
  const auto value = find(key);
  return value ? value->integer() : std::nullopt;
}

std::string JsonValue::written() const { return dumped(value_, -1); }
std::string JsonValue::indented() const { return dumped(value_, 2); }

}  // namespace caisson
