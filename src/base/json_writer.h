// Writes JSON in call order. Small, so that a plain run does not load a JSON library; only MCP and JsonValue write JSON
// with the library.
//
//   JsonWriter json;
//   json.beginObject().key("name").string("x").key("items").beginArray().number(1).end().end();
//   json.text()  ->  {"name":"x","items":[1]}
//
// Strings and keys are always valid UTF-8: invalid bytes become U+FFFD; control and deceptive characters
// (deceptive_text.h) are written as escapes, so that a terminal can show them. raw() is not checked.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

/// Appends `text` as a JSON string, quotes included.
void appendJsonString(std::string& out, std::string_view text);
/// `text` as a JSON string, quotes included.
std::string jsonString(std::string_view text);

class JsonWriter {
 public:
  enum class Layout { one_line, indented };

  explicit JsonWriter(Layout layout = Layout::one_line) : layout_(layout) {}

  JsonWriter& beginObject() { return open('{', '}'); }
  JsonWriter& beginArray() { return open('[', ']'); }
  JsonWriter& end();  ///< ends the innermost object or array

  /// Begins a member of the innermost object; a value must follow.
  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view text);
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& number(std::integral auto value) { return raw(std::to_string(value)); }
  JsonWriter& number(double value);  ///< with at most three decimals, never in exponent form; null if it is not finite

  JsonWriter& raw(std::string_view json);  ///< appends a value that is already JSON, unchanged

  /// A member that may have any bytes: if they are not UTF-8 they are base64, and a member NAME_encoding is "base64".
  JsonWriter& bytes(std::string_view name, std::string_view value);
  /// The same for an array: if one of its values is not UTF-8, all are base64.
  JsonWriter& bytes(std::string_view name, const std::vector<std::string>& values);

  /// An array of strings.
  template <class Texts>
  JsonWriter& strings(const Texts& texts) {
    beginArray();
    for (const auto& text : texts) string(text);
    return end();
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char begin, char close);
  /// Writes the comma and line break that the next key or value needs.
  void separate();
  /// With Layout::indented: a line break and the indentation.
  void beginLine();

  Layout layout_;
  std::string text_;
  std::vector<char> closers_;  ///< `}` or `]` of each open object or array, innermost last
  bool first_ = true;          ///< nothing is in the innermost object or array yet
  bool after_key_ = false;
};

}  // namespace caisson
