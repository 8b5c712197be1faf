#include "base/format.h"

#include <charconv>
#include <cmath>

namespace caisson {
namespace {

std::string digits(std::uint64_t value, int base) {
  char text[24];
  return {text, std::to_chars(text, text + sizeof(text), value, base).ptr};
}

}  // namespace

FormatValue::FormatValue(double number) {
  char text[32];
  // Fixed notation for what a person counts in: the shortest form of 100000 would be 1e+05.
  const bool fixed = number == 0 || (std::abs(number) >= 1e-4 && std::abs(number) < 1e16);
  own_.assign(text, std::to_chars(text, text + sizeof(text), number,
                                  fixed ? std::chars_format::fixed : std::chars_format::scientific)
                        .ptr);
  text_ = own_;
}

std::string formatValues(std::string_view pattern, std::span<const FormatValue> values) {
  std::string text;
  for (const FormatValue& value : values) {
    const std::size_t at = pattern.find("{}");
    text.append(pattern.substr(0, at)).append(value.text());
    pattern.remove_prefix(at + 2);
  }
  return text.append(pattern);
}

std::string hex(std::uint64_t value) { return "0x" + digits(value, 16); }

std::string octal(std::uint64_t value) {
  std::string text = digits(value, 8);
  return text.size() < 4 ? std::string(4 - text.size(), '0') + text : text;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  if (result.size() < width) result.resize(width, ' ');
  return result;
}

}  // namespace caisson
