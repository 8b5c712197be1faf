#include "base/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/base64.h"
#include "base/deceptive_text.h"
#include "base/json_escape.h"
#include "base/utf8.h"

namespace caisson {
namespace {

/// Printable ASCII except the quote and the backslash. Most text is that, and such runs are copied at once.
bool standsForItself(char character) {
  return character >= ' ' && character <= '~' && character != '"' && character != '\\';
}

}  // namespace

void appendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const std::size_t plain = static_cast<std::size_t>(std::ranges::find_if_not(text, standsForItself) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character next = firstCharacter(text);
    if (!next.valid) {
      out += "\xEF\xBF\xBD";
    } else if (next.code == '"' || next.code == '\\') {
      out += '\\';
      out += text[0];
    } else if (isDeceptive(next.code)) {
      appendJsonEscape(out, next.code);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  out += '"';
}

std::string jsonString(std::string_view text) {
  std::string quoted;
  appendJsonString(quoted, text);
  return quoted;
}

void JsonWriter::separate() {
  if (!first_ && !after_key_) text_ += ',';
  if (!after_key_ && !closers_.empty()) beginLine();
  first_ = after_key_ = false;
}

void JsonWriter::beginLine() {
  if (layout_ == Layout::one_line) return;
  text_ += '\n';
  text_.append(2 * closers_.size(), ' ');
}

JsonWriter& JsonWriter::open(char begin, char close) {
  separate();
  text_ += begin;
  closers_.push_back(close);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::end() {
  const char close = closers_.back();
  closers_.pop_back();
  if (!first_) beginLine();
  text_ += close;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::bytes(std::string_view name, std::string_view value) {
  if (isUtf8(value)) return key(name).string(value);
  return key(name).string(encodeBase64(value)).key(std::string(name) + "_encoding").string("base64");
}

JsonWriter& JsonWriter::bytes(std::string_view name, const std::vector<std::string>& values) {
  if (std::ranges::all_of(values, [](const std::string& value) { return isUtf8(value); }))
    return key(name).strings(values);
  key(name).beginArray();
  for (const std::string& value : values) string(encodeBase64(value));
  return end().key(std::string(name) + "_encoding").string("base64");
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  appendJsonString(text_, name);
  text_ += layout_ == Layout::one_line ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  appendJsonString(text_, text);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  char digits[64];
  constexpr double kWhole = 1e15;  // larger ones have no thousandths, and rounding would change them
  const double rounded = std::abs(value) < kWhole ? std::round(value * 1000) / 1000 : value;
  // Not std::to_chars: its tables for floating point are 130 KB of the launcher.
  const int written = std::snprintf(digits, sizeof digits, std::abs(value) < kWhole ? "%.3f" : "%.0f", rounded);
  if (written < 0 || static_cast<std::size_t>(written) >= sizeof digits) return null();
  std::string_view text(digits, static_cast<std::size_t>(written));
  if (text.contains('.')) {
    text.remove_suffix(text.size() - 1 - text.find_last_not_of('0'));
    if (text.ends_with('.')) text.remove_suffix(1);
  }
  return raw(text);
}

}  // namespace caisson
