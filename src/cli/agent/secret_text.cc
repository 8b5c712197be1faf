#include "cli/agent/secret_text.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "audit/redact.h"
#include "base/text.h"

namespace caisson::cli {
namespace {

constexpr bool isLowerCase(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool isUpperCase(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool isLetter(char c) { return isLowerCase(c) || isUpperCase(c); }

/// More of one word is not read, so it counts as a secret.
constexpr std::size_t kLongestWord = 4000;

/// Separates words. The dollar sign, `-`, `.`, `/`, `@` and the like belong to them.
constexpr std::string_view kBetweenWords = " \t\r\n\"'`(){}[]<>,;|&\\";

struct SettingWord {
  std::string_view text;
  char before = '\n';      ///< the character before it
  bool alone = true;       ///< the last one of its line
  bool separator = false;  ///< `:` or `=`
};

/// The words of a text; a colon or an equals sign is a separate word, except in `://`.
std::vector<SettingWord> wordsOf(std::string_view text) {
  std::vector<SettingWord> words;
  std::size_t at = 0;
  while (at < text.size()) {
    if (kBetweenWords.find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    const char before = at == 0 ? '\n' : text[at - 1];
    const auto isSeparator = [&](std::size_t i) {
      return text[i] == '=' || (text[i] == ':' && !text.substr(i).starts_with("://"));
    };
    std::size_t end = at;
    if (isSeparator(at)) {
      end = at + 1;
    } else {
      while (end < text.size() && kBetweenWords.find(text[end]) == std::string_view::npos && !isSeparator(end)) ++end;
    }
    words.push_back({text.substr(at, end - at), before, true, end == at + 1 && isSeparator(at)});
    at = end;
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const auto* const end = words[i].text.data() + words[i].text.size();
    words[i].alone = std::find(end, words[i + 1].text.data(), '\n') != words[i + 1].text.data();
  }
  return words;
}

/// A value that is written out of random characters: hexadecimal, base64, a UUID. Names of models, versions and paths
/// change rarely between letters and digits.
bool looksRandom(std::string_view word) {
  std::size_t run = 0, changes = 0, digits = 0, lowers = 0, uppers = 0, case_changes = 0;
  const auto judge = [&] {
    const bool mixed = digits > 0 && lowers + uppers > 0;
    if (run >= 16 && mixed && changes >= 4) return true;
    return run >= 20 && digits > 0 && lowers > 0 && uppers > 0 && changes + case_changes >= 6;
  };
  char last = 0;
  for (const char c : word) {
    const bool part = isLetter(c) || isDigit(c);
    if (!part && c != '-' && c != '_') {
      if (judge()) return true;
      run = changes = digits = lowers = uppers = case_changes = 0;
      last = 0;
      continue;
    }
    ++run;
    digits += isDigit(c) ? 1 : 0;
    lowers += isLowerCase(c) ? 1 : 0;
    uppers += isUpperCase(c) ? 1 : 0;
    if (part && (isLetter(last) || isDigit(last))) {
      changes += isDigit(c) != isDigit(last) ? 1 : 0;
      case_changes += isLetter(c) && isLetter(last) && isUpperCase(c) != isUpperCase(last) ? 1 : 0;
    }
    last = c;
  }
  return judge();
}

/// A URL other than a plain one: keys stand before the host, in the query, and in segments of the path.
bool isTellingUrl(std::string_view url) {
  std::string_view rest = url.substr(url.find("://") + 3);
  if (rest.find_first_of("@?#%") != std::string_view::npos) return true;
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return looksRandom(rest);
  if (looksRandom(rest.substr(0, slash))) return true;
  for (const std::string_view segment : split(rest.substr(slash), '/')) {
    if (segment.size() > 32 || looksRandom(segment)) return true;
    std::size_t changes = 0;
    for (std::size_t i = 1; i < segment.size(); ++i)
      changes += isDigit(segment[i]) != isDigit(segment[i - 1]) && segment[i] != '.' && segment[i - 1] != '.' ? 1 : 0;
    if (changes > 2) return true;
  }
  return false;
}

bool isHarmlessValue(std::string_view value) {
  return value.empty() || value == "true" || value == "false" || value == "null" || value == "none" || value == "~";
}

/// `$NAME`, `<token>`, `{env:NAME}`, `***`: a place for a value.
bool isPlaceholder(const SettingWord& value) {
  if (std::string_view("$%*").find(value.text.front()) != std::string_view::npos) return true;
  if (value.before == '<' || (value.before == '{' && value.text == "env")) return true;
  const std::string small = lowered(value.text);
  return small.starts_with("your") || small.starts_with("process.env") || small.starts_with("os.environ") ||
         small.find_first_not_of("x.-_") == std::string::npos;
}

bool hasOnlyDigits(std::string_view text) { return text.find_first_not_of("0123456789.") == std::string_view::npos; }

/// Whether the word after a secret name in prose can be its value: not an ordinary word in a sentence.
bool isValueInProse(const SettingWord& value, bool after_flag) {
  const std::string_view text = trimmed(value.text, ".,:!?*");
  const bool plain = std::ranges::all_of(text, [](char c) { return isLetter(c) || c == '-'; });
  if (!plain) return true;
  constexpr std::array<std::string_view, 22> kOrdinary = {
      "to", "for", "and",  "or",      "is", "in", "with", "flag", "option", "if", "the",
      "a",  "an",  "from", "instead", "as", "on", "must", "are",  "not",    "so", "when"};
  const bool ordinary = std::ranges::find(kOrdinary, lowered(text)) != kOrdinary.end();
  return !ordinary && (after_flag || value.alone);
}

bool holdsNamedSecret(std::string_view text, TextKind kind) {
  const std::vector<SettingWord> words = wordsOf(text);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].separator || !isSecretName(words[i].text)) continue;
    const bool flag = words[i].text.starts_with('-');
    std::size_t at = i + 1;
    while (at < words.size() && words[at].separator) ++at;
    if (at == words.size() || (at == i + 1 && !flag)) continue;
    const SettingWord& value = words[at];
    const std::string name = lowered(words[i].text);
    if (isHarmlessValue(value.text) || isPlaceholder(value)) continue;
    // max_tokens = 8000
    if (name.find("token") != std::string::npos && hasOnlyDigits(value.text)) continue;
    if (kind == TextKind::settings || isValueInProse(value, flag)) return true;
  }
  return false;
}

}  // namespace

bool isSecretName(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  if (name.size() < 2 || name.size() > 64) return false;
  std::string small = lowered(name);
  std::erase_if(small, [](char c) { return c == '.'; });
  if (small.starts_with("author") && !small.starts_with("authoriz")) return false;
  if (audit::namesSecret(small)) return true;
  if (small.ends_with("key") && !small.ends_with("hotkey") && !small.ends_with("monkey")) return true;
  constexpr std::array<std::string_view, 14> kParts = {"pat",  "pin",   "dsn",      "jwt",  "otp",     "sas",  "pw",
                                                       "pswd", "creds", "passcode", "cred", "webhook", "seed", "keys"};
  std::string part;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool ends = i == name.size() || (!isLetter(name[i]) && !isDigit(name[i])) ||
                      (i > 0 && isUpperCase(name[i]) && isLowerCase(name[i - 1]));
    if (ends && std::ranges::find(kParts, lowered(part)) != kParts.end()) return true;
    if (ends) part.clear();
    if (i < name.size() && (isLetter(name[i]) || isDigit(name[i]))) part += name[i];
  }
  return false;
}

bool holdsSecret(std::string_view text, TextKind kind) {
  if (text.find('\0') != std::string_view::npos || text.find("PRIVATE KEY-----") != std::string_view::npos) return true;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(" \t\r\n\"'`()<>,;"), rest.size());
    const std::string_view piece = rest.substr(0, end);
    if (end > kLongestWord || audit::redactArgument(piece) != piece || looksRandom(piece)) return true;
    if (piece.find("://") != std::string_view::npos && kind == TextKind::settings && isTellingUrl(piece)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return holdsNamedSecret(text, kind);
}

bool mayHoldSecret(std::string_view path, std::string_view text) {
  const bool prose = path.ends_with(".md") || path.ends_with(".mdc") || path.ends_with(".txt");
  return holdsSecret(text, prose ? TextKind::prose : TextKind::settings);
}

}  // namespace caisson::cli
