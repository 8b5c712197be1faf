#include "policy/rules/setting_values.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/text.h"

namespace caisson::policy {
namespace {

/// A value that stands without quotes, in one line with other values perhaps.
constexpr std::size_t kMaxPlainText = 1024;

class SettingsReader {
 public:
  explicit SettingsReader(std::string_view text) : text_(text) {}

  void read(const std::function<bool(std::string_view)>& matters,
            const std::function<void(std::string_view, const KeyedValue&)>& take) {
    while (at_ < text_.size()) {
      skip();
      if (at_ >= text_.size()) return;
      const std::size_t begin = at_;
      std::optional<std::string> key = word();
      if (!key) {
        at_ = std::max(at_, begin + 1);
        continue;
      }
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      if (at_ >= text_.size() || (text_[at_] != ':' && text_[at_] != '=')) continue;
      ++at_;
      *key = inLowerCase(*key);
      const std::size_t value_begin = at_;
      if (matters(*key)) {
        const KeyedValue found = value(indentOf(begin));
        if (!found.texts.empty()) take(*key, found);
        if (!found.may_hold_keys) continue;
        at_ = value_begin;
      }
      skipValue();
    }
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  /// Passes blanks, punctuation and comments.
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' || (c == '/' && peek(1) == '/')) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '/' && peek(1) == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (std::string_view(" \t\r\n,;{}[]-").find(c) != std::string_view::npos) {
        ++at_;
      } else {
        return;
      }
    }
  }
  /// A quoted text or a plain word.
  std::optional<std::string> word() {
    if (peek() == '"' || peek() == '\'') return quoted();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \t\r\n,:={}[]\"'").find(text_[at_]) == std::string_view::npos)
      ++at_;
    if (at_ == begin) return std::nullopt;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string quoted() {
    const char quote = text_[at_];
    const std::string three(3, quote);
    std::string result;
    if (text_.substr(at_).starts_with(three)) {
      const std::size_t end = std::min(text_.find(three, at_ + 3), text_.size());
      result = text_.substr(at_ + 3, end - at_ - 3);
      at_ = std::min(end + 3, text_.size());
      return result;
    }
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && quote == '"' && at_ + 1 < text_.size()) {
        const char escaped = text_[++at_];
        result += escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
      } else {
        result += text_[at_];
      }
    }
    ++at_;
    return result;
  }
  /// Moves the current line to the one of a position that never decreases by much: long lines are not read again.
  void findLine(std::size_t position) {
    while (line_end_ < position) {
      line_ = line_end_ + 1;
      line_end_ = std::min(text_.find('\n', line_), text_.size());
      first_ = text_.find_first_not_of(" -\t", line_);
    }
  }
  std::size_t indentOf(std::size_t position) {
    findLine(position);
    return std::min(first_, position) - std::min(line_, position);
  }
  KeyedValue value(std::size_t indent) {
    while (peek() == ' ' || peek() == '\t') ++at_;
    if (peek() == '"' || peek() == '\'') return {.texts = {quoted()}};
    if (peek() == '[') return flowList();
    if (peek() == '{') return {};
    findLine(at_);
    const std::size_t end = std::max(line_end_, at_);
    std::string_view line = text_.substr(at_, std::min(end - at_, kMaxPlainText));
    if (const std::size_t comment = line.find(" #"); comment != std::string_view::npos) line = line.substr(0, comment);
    line = trimmed(line, " \t\r,");
    if (line.starts_with('|') || line.starts_with('>') || line.empty()) {
      at_ = std::min(end + 1, text_.size());
      return line.empty() ? blockList(indent) : KeyedValue{.texts = {block(indent)}};
    }
    at_ = std::min(end, at_ + kMaxPlainText);
    return {.texts = {std::string(line)}};
  }
  KeyedValue flowList() {
    KeyedValue found{.list = true};
    for (++at_; at_ < text_.size() && text_[at_] != ']';) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        found.texts.push_back(quoted());
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '{' || c == '[') {
        return found;
      } else if (std::string_view(" \t\r\n,").find(c) != std::string_view::npos) {
        ++at_;
      } else {
        const std::size_t end = std::min(text_.find_first_of(",]\n", at_), text_.size());
        found.texts.emplace_back(trimmed(text_.substr(at_, end - at_), " \t\r"));
        at_ = end;
      }
    }
    return found;
  }
  /// The lines that are indented more.
  std::string block(std::size_t indent) {
    std::string result;
    for (std::size_t line = at_; line < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', line), text_.size());
      const std::size_t first = text_.find_first_not_of(" \t\r", line);
      const bool blank = first == std::string_view::npos || first >= end;
      if (!blank && first - line <= indent) break;
      if (!blank) result += text_.substr(first, end - first);
      result += '\n';
      line = end + 1;
      at_ = std::min(line, text_.size());
    }
    return result;
  }
  /// `- item` lines.
  KeyedValue blockList(std::size_t indent) {
    KeyedValue found{.list = true, .may_hold_keys = true};
    for (std::size_t line = at_; line < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', line), text_.size());
      const std::size_t first = text_.find_first_not_of(" \t\r", line);
      if (first == std::string_view::npos || (first < end && (first - line < indent || text_[first] != '-'))) break;
      if (first < end) {
        found.texts.emplace_back(trimmed(trimmed(text_.substr(first + 1, end - first - 1), " \t\r"), "\"'"));
      }
      line = end + 1;
    }
    return found;
  }
  /// JSON may go on in this line, a plain text of YAML does not.
  void skipValue() {
    while (peek() == ' ' || peek() == '\t') ++at_;
    if (peek() == '"' || peek() == '\'') {
      quoted();
      return;
    }
    if (peek() == '[' || peek() == '{') return;  // may hold keys
    while (at_ < text_.size() && std::string_view("\n,}]").find(text_[at_]) == std::string_view::npos) ++at_;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0, first_ = text_.find_first_not_of(" -\t"), line_end_ = std::min(text_.find('\n'), text_.size());
};

}  // namespace

std::string inLowerCase(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

void forEachSetting(std::string_view text, const std::function<bool(std::string_view key)>& matters,
                    const std::function<void(std::string_view key, const KeyedValue& value)>& take) {
  SettingsReader(text).read(matters, take);
}

}  // namespace caisson::policy
