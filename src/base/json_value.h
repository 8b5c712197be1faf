// Reads JSON into a tree. The JSON library is included in one file behind this interface: its header takes longer to
// compile than the files that read JSON. (The policy reader and MCP use the library directly.)
//
//   const auto value = JsonValue::parse(text);
//   if (value && value->isObject()) name = value->textAt("name").value_or("");
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson {

/// One value of a parsed text; keeps the whole text's tree alive. Cheap to copy.
class JsonValue {
 public:
  /// Nothing if `text` is not JSON, is nested deeper than 128 levels, or has an object of more than 10,000 keys. The
  /// last of several equal keys counts.
  static std::optional<JsonValue> parse(std::string_view text);

  [[nodiscard]] bool isObject() const;
  [[nodiscard]] bool isArray() const;
  /// The string or the integer; nothing if the value has another type. 1.0 is not an integer, nor is a number outside
  /// the range of int64.
  [[nodiscard]] std::optional<std::string> text() const;
  [[nodiscard]] std::optional<std::int64_t> integer() const;

  /// The members of an object in the order of the text, and the elements of an array; empty for other types.
  [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> members() const;
  [[nodiscard]] std::vector<JsonValue> items() const;

  /// A member of an object; nothing if it is missing or this is not an object.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;
  /// The same for a member with a string or an integer; nothing if it has another type.
  [[nodiscard]] std::optional<std::string> textAt(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integerAt(std::string_view key) const;

  /// The value as JSON on one line, and with two blanks per level. Deceptive characters are escaped, as by JsonWriter.
  [[nodiscard]] std::string written() const;
  [[nodiscard]] std::string indented() const;

 private:
  struct Tree;
  JsonValue(std::shared_ptr<const Tree> tree, const void* value) : tree_(std::move(tree)), value_(value) {}

  std::shared_ptr<const Tree> tree_;
  const void* value_;  ///< in the tree
};

}  // namespace caisson
