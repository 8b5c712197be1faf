// Quotes text from a policy for messages.
#pragma once

#include <string>
#include <string_view>

namespace caisson::policy {

/// Replaces control characters and cuts the text at `max_bytes`.
inline std::string printable(std::string_view text, std::size_t max_bytes = 120) {
  std::string result(text.substr(0, max_bytes));
  for (char& letter : result) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = '?';
  }
  return result;
}

/// The same in double quotes, with an ellipsis if the text was cut.
inline std::string quoted(std::string_view text, std::size_t max_bytes = 100) {
  return "\"" + printable(text, max_bytes) + (text.size() > max_bytes ? "...\"" : "\"");
}

}  // namespace caisson::policy
