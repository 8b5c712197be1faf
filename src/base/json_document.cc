#include "base/json_document.h"

#include <algorithm>

#include "base/base64.h"
#include "base/json_escape.h"
#include "base/utf8.h"

namespace caisson {
namespace {

/// Counts brackets and separators outside strings, so that a text is rejected before a tree is built from it.
const char* beyond(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) return "the message is too large";
  std::size_t depth = 0;
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') {
        ++at;
      } else if (letter == '"') {
        in_string = false;
      }
      continue;
    }
    switch (letter) {
      case '"': in_string = true; break;
      case '{':
      case '[':
        if (++depth > limits.depth) return "the message is nested too deeply";
        if (++values > limits.values) return "the message holds too many values";
        break;
      case '}':
      case ']':
        if (depth > 0) --depth;
        break;
      case ',':
        if (++values > limits.values) return "the message holds too many values";
        break;
      default: break;
    }
  }
  return nullptr;
}

}  // namespace

std::expected<Json, std::string> parseJson(std::string_view text, const JsonLimits& limits) {
  if (const char* reason = beyond(text, limits)) return std::unexpected(std::string(reason));
  Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return std::unexpected("the message is not valid JSON");
  return value;
}

std::string writeJson(const Json& value) {
  return withEscapes(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void setBytes(Json& object, const std::string& name, std::string_view bytes) {
  const bool plain = isUtf8(bytes);
  object[name] = plain ? std::string(bytes) : encodeBase64(bytes);
  if (!plain) object[name + "_encoding"] = "base64";
}

void setBytes(Json& object, const std::string& name, const std::vector<std::string>& values) {
  const bool plain = std::ranges::all_of(values, [](const std::string& value) { return isUtf8(value); });
  Json list = Json::array();
  for (const std::string& value : values) list.push_back(plain ? value : encodeBase64(value));
  object[name] = std::move(list);
  if (!plain) object[name + "_encoding"] = "base64";
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(key);
  return member == object.end() ? nullptr : &*member;
}

const Json* findObject(const Json& object, std::string_view key) {
  const Json* member = find(object, key);
  return member != nullptr && member->is_object() ? member : nullptr;
}

std::optional<std::string> textAt(const Json& object, std::string_view key) {
  const Json* member = find(object, key);
  if (member == nullptr || !member->is_string()) return std::nullopt;
  return member->get_ref<const std::string&>();
}

std::optional<std::int64_t> integerAt(const Json& object, std::string_view key) {
  const Json* member = find(object, key);
  if (member == nullptr || !member->is_number_integer()) return std::nullopt;
  if (member->is_number_unsigned() && member->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  return member->get<std::int64_t>();
}

std::optional<bool> booleanAt(const Json& object, std::string_view key) {
  const Json* member = find(object, key);
  if (member == nullptr || !member->is_boolean()) return std::nullopt;
  return member->get<bool>();
}

}  // namespace caisson
