#include "base/json_value.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/json_escape.h"

namespace caisson {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 128;    // the library writes and copies recursively
constexpr std::size_t kMaxKeys = 10'000;  // it compares each key of an object with all before it

/// Whether a tree of the text would be too deep, or slow to build. Counts brackets and commas outside strings.
bool exceedsLimits(std::string_view text) {
  struct Open {
    bool object = false;
    std::size_t commas = 0;
  };
  std::array<Open, kMaxDepth> open;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (depth == kMaxDepth) return true;
      open[depth++] = {.object = letter == '{'};
    } else if ((letter == '}' || letter == ']') && depth > 0) {
      --depth;
    } else if (letter == ',' && depth > 0 && open[depth - 1].object && ++open[depth - 1].commas >= kMaxKeys) {
      return true;
    }
  }
  return false;
}

const Json& jsonAt(const void* value) { return *static_cast<const Json*>(value); }

std::string dumped(const void* value, int indent) {
  return withEscapes(jsonAt(value).dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

struct JsonValue::Tree {
  Json root;
};

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  if (exceedsLimits(text)) return std::nullopt;
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
