// Writes JSON in call order. Small, so that a plain run does not load a JSON library.
//
//   JsonWriter json;
//   json.beginObject().key("name").string("x").key("items").beginArray().number(1).end().end();
//   json.text()  ->  {"name":"x","items":[1]}
//
// The text is always valid UTF-8 on one line: invalid bytes become U+FFFD; control and deceptive
// characters (safe_text.h) are written as \u escapes, so that a terminal can show it.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::cli {

class JsonWriter {
 public:
  JsonWriter& beginObject() { return open('{', '}'); }
  JsonWriter& beginArray() { return open('[', ']'); }
  JsonWriter& end();  ///< ends the innermost object or array

  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view text);
  JsonWriter& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& null() { return raw("null"); }
  JsonWriter& number(std::integral auto value) { return raw(std::to_string(value)); }
  JsonWriter& number(double value);  ///< with at most three decimals, never in exponent form

  JsonWriter& raw(std::string_view json);  ///< appends a value that is already JSON

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char begin, char close);
  void separate();
  void appendQuoted(std::string_view text);

  std::string text_;
  std::vector<char> closers_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace caisson::cli
