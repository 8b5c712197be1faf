// Secrets that are recognised by their form alone, without a name beside them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace caisson::cli {

constexpr bool isLowerCase(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool isUpperCase(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool isLetter(char c) { return isLowerCase(c) || isUpperCase(c); }

constexpr bool isOneOf(std::string_view word, const auto& list) {
  return std::ranges::find(list, word) != std::end(list);
}

/// A value that is written out of random characters: hexadecimal, base64, a UUID, letters that form no words. Names of
/// models, versions and paths change rarely between letters, digits and capitals.
bool looksRandom(std::string_view word);

/// `user:password@host`, with or without what follows the host; not an image or a package with a version.
bool hasUserAndPassword(std::string_view word);

/// `Bearer TOKEN`, `Basic BASE64`: the value of a header, wherever it stands. `strict`: also if the token is a plain
/// word.
bool hasHeaderValue(std::string_view text, bool strict);

/// A place for a value, not one: `$TOKEN`, `<token>`, `***`, `xxx`, or nothing.
bool isPlace(std::string_view value);

/// The next word of `text` up to a blank or a quote, which is removed from it; "" at the end of a line, whose end is
/// removed, and at the end of the text.
std::string_view nextWord(std::string_view& text);

}  // namespace caisson::cli
