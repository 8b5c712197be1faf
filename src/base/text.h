// Small helpers for text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace caisson {

// ASCII only, independent of the locale.
constexpr bool isDigit(char c) { return c >= '0' && c <= '9'; }
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

/// The text without these characters at its start and end.
constexpr std::string_view trimmed(std::string_view text, std::string_view blanks = " \t") {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The parts with the separator between them; empty parts at the start get none.
inline std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ") {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : separator).append(part);
  return text;
}

/// Splits at the separator and skips empty parts. The parts are views into `text`.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Replaces ASCII control characters by `?` and cuts the text at `max_bytes`. Other deceptive characters stay.
inline std::string printable(std::string_view text, std::size_t max_bytes = 120) {
  std::string result(text.substr(0, max_bytes));
  for (char& letter : result) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = '?';
  }
  return result;
}

/// printable() text in double quotes, with an ellipsis if it was cut.
inline std::string inQuotes(std::string_view text, std::size_t max_bytes = 100) {
  return "\"" + printable(text, max_bytes) + (text.size() > max_bytes ? "...\"" : "\"");
}

}  // namespace caisson
