// Tokens that services issue, and values of settings.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/rules/secret_content.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kDigitLetters = "0123456789";
constexpr std::string_view kUpperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

namespace token_letters {
constexpr std::string_view hex = "abcdefABCDEF", upper = "", alnum = "abcdefghijklmnopqrstuvwxyz",
                           word = "abcdefghijklmnopqrstuvwxyz_", dash = "abcdefghijklmnopqrstuvwxyz_-",
                           dot = "abcdefghijklmnopqrstuvwxyz_-.;", base64 = "abcdefghijklmnopqrstuvwxyz+/=_-",
                           path = "abcdefghijklmnopqrstuvwxyz_-/.@", telegram = "abcdefghijklmnopqrstuvwxyz_-";
}  // namespace token_letters

struct TokenShape {
  std::string_view issuer, prefix;
  std::string_view letters;  ///< beside digits and capital letters; those of `hex` are all
  std::size_t least;
};

constexpr TokenShape kTokenShapes[] = {
#define TOKEN(issuer, prefix, letters, least) {issuer, prefix, token_letters::letters, least},
#include "policy/rules/secret_tokens.inc"
#undef TOKEN
};

bool isTokenLetter(const TokenShape& shape, char c) {
  if (isDigit(c)) return true;
  if (shape.letters.find(c) != std::string_view::npos) return true;
  return shape.letters != token_letters::hex && c >= 'A' && c <= 'Z';
}

bool isWord(char c) { return isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }

/// Repeated letters, as in "ghp_xxxxxxxxxxxx", do not count.
bool isFiller(std::string_view value) {
  std::array<bool, 256> seen{};
  int distinct = 0;
  for (const char c : value) {
    if (!std::exchange(seen[static_cast<unsigned char>(c)], true)) ++distinct;
  }
  constexpr int kLeastDistinct = 5;
  return distinct < kLeastDistinct;
}

/// What is looked at of one candidate: a text that repeats a prefix must not take the square of its length.
constexpr std::size_t kMaxLetters = 64, kMaxJwtLetters = 256;

bool matchesShape(const TokenShape& shape, std::string_view text) {
  if (!text.starts_with(shape.prefix)) return false;
  text.remove_prefix(shape.prefix.size());
  std::size_t end = 0;
  text = text.substr(0, kMaxLetters);
  while (end < text.size() && isTokenLetter(shape, text[end])) ++end;
  return end >= shape.least && (shape.least < 10 || !isFiller(text.substr(0, end)));
}

const std::array<std::vector<const TokenShape*>, 256>& shapesByFirst() {
  static const auto table = [] {
    std::array<std::vector<const TokenShape*>, 256> made;
    for (const TokenShape& one : kTokenShapes) made[static_cast<unsigned char>(one.prefix.front())].push_back(&one);
    return made;
  }();
  return table;
}

constexpr std::string_view kTokenNames[] = {"token",  "passw", "secret", "jwt",    "auth",
                                            "bearer", "key",   "cookie", "session"};

/// A signed JSON Web Token with a name like `token` before it.
bool isNamedJwt(std::string_view text, std::size_t at) {
  std::string_view rest = text.substr(at);
  for (int part = 0; part < 3; ++part) {
    std::size_t end = 0;
    const std::size_t most = std::min(rest.size(), part == 0 ? kMaxJwtLetters : 32 * kMaxJwtLetters);
    while (end < most && (isWord(rest[end]) || rest[end] == '-')) ++end;
    constexpr std::size_t kLeast = 8;
    if (end < kLeast || (part < 2 && (end == rest.size() || rest[end] != '.'))) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  constexpr std::size_t kNear = 80;
  const std::string before = lowered(text.substr(at < kNear ? 0 : at - kNear, std::min(at, kNear)));
  return std::ranges::any_of(kTokenNames,
                             [&](std::string_view name) { return before.find(name) != std::string::npos; });
}

}  // namespace

std::optional<std::string_view> findToken(std::string_view text) {
  const auto& shapes = shapesByFirst();
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto& candidates = shapes[static_cast<unsigned char>(text[at])];
    const bool jwt = text[at] == 'e' && text.substr(at, 3) == "eyJ";
    if (candidates.empty() && !jwt) continue;
    // Not in the middle of a word; a prefix that begins with a mark may follow one.
    if (at > 0 && isWord(text[at]) && isWord(text[at - 1]) && !text.substr(0, at).ends_with("\\n")) continue;
    for (const TokenShape* shape : candidates) {
      if (matchesShape(*shape, text.substr(at))) return shape->issuer;
    }
    if (jwt && isNamedJwt(text, at)) return "a JSON Web Token";
  }
  return std::nullopt;
}

bool looksRandom(std::string_view value) {
  constexpr std::size_t kLeast = 12, kLong = 20;
  if (value.find("\\u") != std::string_view::npos) return false;  // letters of a language
  bool small = false, capital = false, digit = false, mark = false;
  for (const char c : value) {
    if (c <= ' ' || c >= 0x7F) return false;
    (isDigit(c) ? digit : c >= 'a' && c <= 'z' ? small : c >= 'A' && c <= 'Z' ? capital : mark) = true;
  }
  const int classes = small + capital + digit + mark;
  if (isFiller(value) || !digit || value.size() < kLeast) return false;
  return classes >= 3 || (value.size() >= kLong && classes >= 2 && std::ranges::count_if(value, isDigit) >= 4);
}

bool hasUrlPassword(std::string_view text, bool random) {
  constexpr std::size_t kMaxUrl = 300;
  for (std::size_t at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 1)) {
    const std::string_view rest = text.substr(at + 3, kMaxUrl);
    const std::string_view host = rest.substr(0, rest.find_first_of("/?# \t\r\n\"'<>,;)"));
    const std::size_t sign = host.rfind('@');
    const std::string_view user = sign == std::string_view::npos ? "" : host.substr(0, sign);
    const std::size_t colon = user.find(':');
    const std::string_view password = colon == std::string_view::npos ? "" : user.substr(colon + 1);
    if (random ? looksRandom(password)
               : !password.empty() && password.find_first_of("${<*%") != 0 &&
                     password.find_first_not_of("xX*") != std::string_view::npos)
      return true;
    if (random || host.empty()) continue;
    // conda: a token in the path.
    const std::size_t token = rest.find("/t/");
    if (token != std::string_view::npos) {
      const std::string_view value = rest.substr(token + 3, rest.find_first_of("/ \r\n\"'", token + 3) - token - 3);
      if (value.size() >= 8 && std::ranges::all_of(value, [](char c) { return isWord(c) || c == '-'; })) return true;
    }
    // A user without a password is a token if it is long.
    constexpr std::size_t kTokenSize = 20;
    if (colon == std::string_view::npos && user.size() >= kTokenSize && std::ranges::any_of(user, isDigit)) return true;
  }
  return false;
}

}  // namespace caisson::policy
