// Text with values in it: format("{} bytes of {}", count, name). `{}` only; hex(), octal() and padded() do the rest.
// Our own, since the header of a formatting library takes longer to compile than the files that use it.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace caisson {

/// One value as text: strings unchanged, numbers in decimal, floating-point numbers with the fewest digits.
class FormatValue {
 public:
  FormatValue(std::string_view text) : text_(text) {}
  FormatValue(const std::string& text) : text_(text) {}
  FormatValue(const char* text) : text_(text) {}
  FormatValue(std::integral auto number) : own_(std::to_string(number)), text_(own_) {}
  FormatValue(double number);
  FormatValue(const FormatValue&) = delete;
  FormatValue& operator=(const FormatValue&) = delete;

  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  std::string own_;
  std::string_view text_;
};

/// A literal with as many `{}` as there are values; another number does not compile.
template <std::size_t kValues>
struct FormatPattern {
  consteval FormatPattern(const char* literal) : text(literal) {
    std::size_t found = 0;
    for (std::size_t at = 0; at + 1 < text.size(); ++at) found += text[at] == '{' && text[at + 1] == '}' ? 1 : 0;
    if (found != kValues) throw "the number of {} differs from the number of values";
  }

  std::string_view text;
};

/// Replaces each `{}` by the next value. Call format() instead, which checks their number.
std::string formatValues(std::string_view pattern, std::span<const FormatValue> values);

template <class... Values>
std::string format(FormatPattern<sizeof...(Values)> pattern, const Values&... values) {
  const FormatValue list[] = {FormatValue(values)...};
  return formatValues(pattern.text, list);
}

/// "0x1f".
std::string hex(std::uint64_t value);
/// "0755", with at least four digits: an access mode.
std::string octal(std::uint64_t value);
/// `text`, with blanks appended up to `width` bytes; longer text unchanged.
std::string padded(std::string_view text, std::size_t width);

}  // namespace caisson
