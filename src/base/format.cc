#include "base/format.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace caisson {
namespace {

std::string digits(std::uint64_t value, int base) {
  char text[24];
  return {text, std::to_chars(text, text + sizeof(text), value, base).ptr};
}

}  // namespace

FormatValue::FormatValue(double number) {
  // Fixed notation for what a person counts in: the shortest form of 100000 would be 1e+05.
  const bool fixed = number == 0 || (std::abs(number) >= 1e-4 && std::abs(number) < 1e16);
  // The fewest digits that mean this number. Not std::to_chars: its tables for floating point are 170 KB of the
  // launcher.
  constexpr int kMaxPlaces = 21;
  char text[64];
  for (int places = 0; places <= kMaxPlaces; ++places) {
    std::snprintf(text, sizeof text, fixed ? "%.*f" : "%.*e", places, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  own_ = text;
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
