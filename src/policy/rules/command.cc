#include "policy/rules/command.h"

#include <algorithm>

#include "policy/rules/pattern.h"

namespace caisson::policy {

namespace {

constexpr std::size_t kShownBytes = 100;

bool isPlain(char letter) {
  const bool alphanumeric =
      (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
  return alphanumeric || std::string_view("_@%+=:,./-").find(letter) != std::string_view::npos;
}

/// The length of the well-formed UTF-8 character at the start of `text`, or 0.
std::size_t characterLength(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

/// Replaces invalid bytes by U+FFFD. RE2 does not match across a byte that is not UTF-8: one such byte would hide a
/// command from `rm .*-rf`.
std::string wellFormed(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = characterLength(text);
    if (length == 0) {
      result += "\xEF\xBF\xBD";
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string inBackticks(std::string_view text) {
  return "`" + std::string(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "..." : "") + "`";
}

std::optional<CommandRefusal> refuseLength(const CommandRules& rules, std::size_t length) {
  if (length <= rules.max_length) return std::nullopt;
  return CommandRefusal{
      "commands.max_length",
      "the command has " + std::to_string(length) + " bytes, the policy allows " + std::to_string(rules.max_length),
      "shorten it, or pass the data by standard input"};
}

std::string element(std::string_view key, std::size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

bool hasPatterns(const CommandRules& rules) { return rules.allowed_patterns || !rules.blocked_patterns.empty(); }

std::optional<CommandRefusal> refuseByPattern(const CommandRules& rules, std::string_view command) {
  const std::string text = wellFormed(command);
  for (std::size_t index = 0; index < rules.blocked_patterns.size(); ++index) {
    const std::string& pattern = rules.blocked_patterns[index];
    if (const auto found = findPattern(pattern, text)) {
      return CommandRefusal{
          element("commands.blocked_patterns", index),
          "the command has " + inBackticks(*found) + ", which the pattern " + inBackticks(pattern) + " blocks",
          "leave that part out, or change the policy"};
    }
  }
  if (!rules.allowed_patterns) return std::nullopt;
  for (const std::string& pattern : *rules.allowed_patterns) {
    if (findPattern(pattern, text)) return std::nullopt;
  }
  const std::size_t count = rules.allowed_patterns->size();
  return CommandRefusal{"commands.allowed_patterns",
                        count == 0   ? "the list is empty, so no command may run"
                        : count == 1 ? "the command does not match the only allowed pattern, " +
                                           inBackticks(rules.allowed_patterns->front())
                                     : "the command matches none of the " + std::to_string(count) + " allowed patterns",
                        "`caisson policy explain` shows the patterns"};
}

}  // namespace

std::string commandLine(std::span<const std::string> argv) {
  std::string line;
  for (const std::string& word : argv) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && std::ranges::all_of(word, isPlain)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char letter : word) {
      if (letter == '\'') {
        line += "'\\''";
      } else {
        line += letter;
      }
    }
    line += '\'';
  }
  return line;
}

std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::string_view command) {
  if (auto refusal = refuseLength(rules, command.size())) return refusal;
  return hasPatterns(rules) ? refuseByPattern(rules, command) : std::nullopt;
}

std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::span<const std::string> argv) {
  std::size_t length = argv.empty() ? 0 : argv.size() - 1;
  for (const std::string& word : argv) length += word.size();
  if (auto refusal = refuseLength(rules, length)) return refusal;
  return hasPatterns(rules) ? refuseByPattern(rules, commandLine(argv)) : std::nullopt;
}

std::optional<std::string> networkUse(std::string_view command) {
  // A program at the beginning, after a separator, a quote or a program that starts others, with an argument: a path or
  // an argument called `ssh` does not count.
  static constexpr std::string_view kStarted =
      R"((?:^|[|&;({'"`\n]|(?:^|\s)(?:sudo|exec|env|time|nohup|xargs)\s)\s*(?:[\w.+-]*/)*)"
      R"((?:(?:curl|wget|fetch|ssh|scp|rsync|nc|telnet)\s+[^\s'"]|npm\s+(?:install|i|ci|update|publish)\b)"
      R"(|yarn\s+(?:add|install|upgrade)\b|pip3?\s+(?:install|download)\b|git\s+(?:clone|fetch|pull|push)\b))"
      R"(|\bhttps?://)";
  static constexpr std::string_view kSign =
      R"((?:npm|yarn|pip3?|git)\s+\w+$|\b(?:curl|wget|fetch|ssh|scp|rsync|nc|telnet)\b|https?://)";
  const auto started = findPattern(kStarted, wellFormed(command));
  return started ? findPattern(kSign, *started) : std::nullopt;
}

}  // namespace caisson::policy
