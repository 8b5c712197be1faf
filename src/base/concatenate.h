// Joins texts at compile time, for help texts with parts from other tables.
//
//   constexpr std::string_view kBegin = "One of ", kEnd = ".";
//   constexpr std::string_view kHelp = kConcatenated<kBegin, kNames, kEnd>;
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace caisson {

template <const std::string_view&... kParts>
constexpr auto concatenate() {
  std::array<char, (kParts.size() + ... + 0)> letters{};
  auto at = letters.begin();
  ((at = std::ranges::copy(kParts, at).out), ...);
  return letters;
}

template <const std::string_view&... kParts>
inline constexpr auto kConcatenatedLetters = concatenate<kParts...>();

template <const std::string_view&... kParts>
inline constexpr std::string_view kConcatenated{kConcatenatedLetters<kParts...>.data(),
                                                kConcatenatedLetters<kParts...>.size()};

}  // namespace caisson
