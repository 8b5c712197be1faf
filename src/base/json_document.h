// JSON documents of clients, for servers: parsed with limits that are checked before any allocation, written on one
// line.
//
//   auto value = parseJson(line, {});
//   if (!value) printError(value.error());
//   const std::string name = textAt(*value, "name").value_or("");
//
// Nothing here throws: accessors return "missing" for a missing member and for one of another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

using Json = nlohmann::json;

/// Limits for untrusted input. The clients of the official SDKs close a connection at a line of 10 MiB.
struct JsonLimits {
  std::size_t bytes = std::size_t{8} << 20U;
  std::size_t depth = 64;        ///< nlohmann writes and copies recursively
  std::size_t values = 200'000;  ///< a value costs up to about 100 bytes more than its text
};

/// Returns the value, or an error message that quotes nothing of the text.
std::expected<Json, std::string> parseJson(std::string_view text, const JsonLimits& limits = {});

/// On one line; bytes that are not UTF-8 become U+FFFD.
std::string writeJson(const Json& value);

/// Sets a member that may have any bytes: if they are not UTF-8 they are base64, and a member NAME_encoding is
/// "base64".
void setBytes(Json& object, const std::string& name, std::string_view bytes);
/// The same for an array: if one of its values is not UTF-8, all are base64.
void setBytes(Json& object, const std::string& name, const std::vector<std::string>& values);

/// The member of an object, or null.
const Json* find(const Json& object, std::string_view key);
/// The member of an object if it is itself an object, or null.
const Json* findObject(const Json& object, std::string_view key);
/// The member of an object; nothing if it is missing or has another type. integerAt(): nor beyond int64.
std::optional<std::string> textAt(const Json& object, std::string_view key);
std::optional<std::int64_t> integerAt(const Json& object, std::string_view key);
std::optional<bool> booleanAt(const Json& object, std::string_view key);

}  // namespace caisson
