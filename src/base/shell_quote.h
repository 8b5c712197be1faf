// Quotes text for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

/// `text` as one argument of a shell: unchanged if it is plain, else in single quotes. `also_plain`: further characters
/// that need no quotes, for text that is only displayed.
inline std::string shellQuoted(std::string_view text, std::string_view also_plain = {}) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@+%";
  bool plain = !text.empty();
  for (const char letter : text) {
    plain =
        plain && (kPlain.find(letter) != std::string_view::npos || also_plain.find(letter) != std::string_view::npos);
  }
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char letter : text) letter == '\'' ? quoted += "'\\''" : quoted += letter;
  return quoted += '\'';
}

}  // namespace caisson
