#include "cli/agent/secret_shapes.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/base64.h"
#include "base/text.h"

namespace caisson::cli {
namespace {

/// How a run of letters and digits is written.
struct RunShape {
  std::size_t size = 0, digits = 0, lowers = 0, uppers = 0;
  std::size_t digit_changes = 0, case_changes = 0;  ///< between neighbours
  std::size_t consonants = 0, most_consonants = 0;
  bool hexadecimal = true;

  void add(char c, char last) {
    ++size;
    digits += isDigit(c) ? 1 : 0;
    lowers += isLowerCase(c) ? 1 : 0;
    uppers += isUpperCase(c) ? 1 : 0;
    const bool after_letter = isLetter(last), after_digit = isDigit(last);
    if (after_letter || after_digit) digit_changes += isDigit(c) != after_digit ? 1 : 0;
    if (after_letter && isLetter(c)) case_changes += isUpperCase(c) != isUpperCase(last) ? 1 : 0;
    const bool vowel = std::string_view("aeiouy").find(lower(c)) != std::string_view::npos;
    consonants = isLetter(c) && !vowel ? consonants + 1 : 0;
    most_consonants = std::max(most_consonants, consonants);
    if (!isDigit(c) && (lower(c) < 'a' || lower(c) > 'f')) hexadecimal = false;
  }

  /// Names in camel case have a few letters between two capitals, words have vowels.
  [[nodiscard]] bool isRandom() const {
    const std::size_t letters = lowers + uppers;
    if (size >= 32 && hexadecimal && digits > 0 && letters > 0) return true;
    if (size >= 16 && letters == 0) return true;
    if (size >= 16 && digits == 0 && case_changes >= 6 && uppers * 3 >= size && lowers * 3 >= size) return true;
    return size >= 20 && digits == 0 && (lowers == 0 || uppers == 0) && most_consonants >= 5;
  }
};

/// One part of a word, with the marks that join the parts of a UUID or a token.
bool isRandomPart(const RunShape& part) {
  const bool mixed = part.digits > 0 && part.lowers + part.uppers > 0;
  if (part.size >= 16 && mixed && part.digit_changes >= 4) return true;
  return part.size >= 20 && part.digits > 0 && part.lowers > 0 && part.uppers > 0 &&
         part.digit_changes + part.case_changes >= 6;
}

/// Base64 with its signs, which the parts of a path have as well: it changes in every few letters.
bool isBase64(std::string_view word) {
  const bool padded = word.ends_with('=');
  while (word.ends_with('=')) word.remove_suffix(1);
  constexpr std::size_t kLeast = 20, kLong = 32;
  if (word.size() < kLeast || std::string_view("/~.-").find(word.front()) != std::string_view::npos) return false;
  RunShape shape;
  char last = 0;
  for (const char c : word) {
    const bool mark = c == '+' || c == '/' || c == '_' || c == '-';
    if (!mark && !isLetter(c) && !isDigit(c)) return false;
    if (!mark) shape.add(c, last);
    last = c;
  }
  if (shape.digits == 0 || shape.lowers == 0 || shape.uppers == 0) return false;
  const bool signs = padded || word.find('+') != std::string_view::npos;
  return (signs || word.size() >= kLong) && (shape.digit_changes + shape.case_changes) * 4 >= shape.size;
}

/// What stands before a colon without being a user: schemes of references, and words before a mail address.
constexpr std::string_view kNoUsers[] = {
    "mailto", "xmpp",   "sip",    "sips", "acct",  "git", "npm", "jsr",     "file",     "link",      "workspace",
    "github", "gitlab", "docker", "oci",  "image", "pkg", "pip", "uv",      "exec",     "contact",   "email",
    "mail",   "e-mail", "author", "from", "to",    "cc",  "bcc", "support", "reviewer", "maintainer"};
/// What stands behind `@` without being a host.
constexpr std::string_view kNoHosts[] = {"latest", "next", "beta", "alpha", "canary", "stable", "main", "master"};

bool isVersion(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  const std::size_t end = text.find_first_not_of("0123456789.");
  const bool address = std::ranges::count(text.substr(0, end), '.') == 3;
  return !text.empty() && isDigit(text.front()) && !address;
}

bool isHost(std::string_view text) {
  text = text.substr(0, 256);  // no host name is longer: a word of signs must not take the square of its length
  const std::string_view name = text.substr(0, text.find_first_of(":/?"));
  if (name.empty() || !(isLetter(name.front()) || isDigit(name.front()) || name.front() == '[')) return false;
  if (name.starts_with("sha256") || name.starts_with("sha512") || isVersion(name)) return false;
  return std::ranges::find(kNoHosts, lowered(name)) == std::end(kNoHosts);
}

bool isBearerToken(std::string_view value, bool strict) {
  value = trimmed(value, ".,:;!?)");
  if (isPlace(value)) return false;
  if (std::ranges::any_of(value, isDigit) || value.size() >= 20) return true;
  constexpr std::string_view kOrdinary[] = {"token",
                                            "tokens",
                                            "auth",
                                            "authentication",
                                            "header",
                                            "authorization",
                                            "authenticated",
                                            "scheme",
                                            "key",
                                            "keys",
                                            "is",
                                            "and",
                                            "or",
                                            "for",
                                            "with",
                                            "as",
                                            "of",
                                            "the",
                                            "in",
                                            "only"};
  return strict && std::ranges::find(kOrdinary, lowered(value)) == std::end(kOrdinary);
}

/// Base64 of `user:password`.
bool isBasicToken(std::string_view value) {
  std::string text(trimmed(value, ".,:;!?)="));
  if (text.size() < 4) return false;
  text.append((4 - text.size() % 4) % 4, '=');
  const auto decoded = decodeBase64(text);
  return decoded && decoded->find(':') != std::string::npos &&
         std::ranges::all_of(*decoded, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7F; });
}

}  // namespace

namespace {

/// `$NAME`, `$name`, `$secretName`: letters, digits and capitals together are rather a password that begins with a
/// dollar sign.
bool isReference(std::string_view value) {
  value.remove_prefix(1);
  if (value.empty() || std::string_view("{([$").find(value.front()) != std::string_view::npos) return true;
  const auto inName = [](char c) { return isLetter(c) || isDigit(c) || c == '_'; };
  const auto end = std::ranges::find_if_not(value, inName);
  const std::string_view name(value.begin(), end);
  if (name.empty() || (end != value.end() && std::string_view("/@:.,;!?)}]\\&|").find(*end) == std::string_view::npos))
    return false;
  return !std::ranges::any_of(name, isDigit) || !std::ranges::any_of(name, isLowerCase) ||
         !std::ranges::any_of(name, isUpperCase);
}

}  // namespace

bool isPlace(std::string_view value) {
  if (value.empty() || value.find_first_not_of("xX.-_*") == std::string_view::npos) return true;
  if (value.front() == '$') return isReference(value);
  if (value.front() == '%') return value.size() <= 3 || value.ends_with('%') || value[1] == '(' || value[1] == '{';
  return std::string_view("<{[").find(value.front()) != std::string_view::npos || lowered(value.substr(0, 4)) == "your";
}

bool looksRandom(std::string_view word) {
  RunShape part, run;
  char last = 0;
  for (const char c : word) {
    const bool plain = isLetter(c) || isDigit(c);
    if (!plain) {
      if (run.isRandom()) return true;
      run = {};
    }
    if (!plain && c != '-' && c != '_') {
      if (isRandomPart(part)) return true;
      part = {};
      last = 0;
      continue;
    }
    if (plain) {
      part.add(c, last);
      run.add(c, last);
    } else {
      ++part.size;
    }
    last = c;
  }
  if (run.isRandom() || isRandomPart(part) || isBase64(word)) return true;
  const std::size_t sign = word.find('=');  // NAME=VALUE
  return sign != std::string_view::npos && isBase64(word.substr(sign + 1));
}

bool hasUserAndPassword(std::string_view word) {
  if (word.find("://") != std::string_view::npos) return false;  // judged as a URL
  if (word.starts_with("jdbc:oracle:")) {
    const std::size_t sign = word.find('@');
    return sign != std::string_view::npos && word.substr(0, sign).find('/') != std::string_view::npos;
  }
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view user = word.substr(0, colon);
  if (user.find('/') != std::string_view::npos) return false;
  if (std::ranges::find(kNoUsers, lowered(user)) != std::end(kNoUsers)) return false;
  for (std::size_t sign = word.find('@', colon); sign != std::string_view::npos; sign = word.find('@', sign + 1)) {
    if (isPlace(word.substr(colon + 1, sign - colon - 1))) continue;
    if (isHost(word.substr(sign + 1))) return true;
  }
  return false;
}

std::string_view nextWord(std::string_view& text) {
  constexpr std::string_view kBlanksAndQuotes = " \t\r\"'`";
  const std::size_t start = text.find_first_not_of(kBlanksAndQuotes);
  text.remove_prefix(std::min(start, text.size()));
  if (text.starts_with('\n')) {
    text.remove_prefix(1);
    return {};
  }
  const std::string_view word = text.substr(0, text.find_first_of(" \t\r\"'`\n"));
  text.remove_prefix(word.size());
  return word;
}

bool hasHeaderValue(std::string_view text, bool strict) {
  for (std::string_view scheme; !text.empty();) {
    const std::string_view word = nextWord(text);
    if (lowered(scheme) == "bearer" && isBearerToken(word, strict)) return true;
    if (lowered(scheme) == "basic" && isBasicToken(word)) return true;
    // "Authorization:Bearer"
    const std::size_t sign = word.find_last_of(":=(,");
    scheme = word.substr(sign == std::string_view::npos ? 0 : sign + 1);
    if (word.empty()) scheme = {};
  }
  return false;
}

}  // namespace caisson::cli
