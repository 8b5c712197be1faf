// Tokens that services issue, and values of settings.
#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/rules/secret_content.h"

namespace caisson::policy {
namespace {

namespace token_letters {
constexpr std::string_view hex = "abcdefABCDEF", upper = "", alnum = "abcdefghijklmnopqrstuvwxyz",
                           word = "abcdefghijklmnopqrstuvwxyz_", dash = "abcdefghijklmnopqrstuvwxyz_-",
                           dot = "abcdefghijklmnopqrstuvwxyz_-.;", base64 = "abcdefghijklmnopqrstuvwxyz+/=_-",
                           path = "abcdefghijklmnopqrstuvwxyz_-/.@", telegram = "abcdefghijklmnopqrstuvwxyz_-",
                           percent = "abcdefghijklmnopqrstuvwxyz+/=_-%", url = "abcdefghijklmnopqrstuvwxyz_-:@.?&=/%";
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

/// Values that manuals of the services show. AWS ends its own with EXAMPLE.
constexpr std::string_view kDocumentedTokens[] = {
    "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "key-3ax6xnjp29jd6fds4gc373sgvjxteol0",
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRAZ6IFsuFq2UVErCz4I6",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"};

bool isDocumented(std::string_view issuer, std::string_view text) {
  constexpr std::size_t kAwsKey = 20;
  if (issuer == "AWS" && text.size() >= kAwsKey && text.substr(0, kAwsKey).ends_with("EXAMPLE")) return true;
  return std::ranges::any_of(kDocumentedTokens, [&](std::string_view one) { return text.starts_with(one); });
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

std::size_t lengthOf(std::string_view text, std::string_view marks, std::size_t most) {
  std::size_t end = 0;
  while (end < std::min(text.size(), most) && (isWord(text[end]) || marks.find(text[end]) != std::string_view::npos))
    ++end;
  return end;
}

bool isNumberInBase64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    if (!isDigit(static_cast<char>((bits >> count) & 0xFFU))) return false;
  }
  return true;
}

/// The base64 of a number of 17 to 20 digits, six letters, and the signature.
bool isDiscordToken(std::string_view text) {
  const std::size_t user = lengthOf(text, "-", 30);
  if (user < 23 || user > 28 || user >= text.size() || text[user] != '.') return false;
  if (!isNumberInBase64(text.substr(0, user))) return false;
  const std::string_view time = text.substr(user + 1);
  if (lengthOf(time, "-", 8) != 6 || time.size() < 8 || time[6] != '.') return false;
  return lengthOf(time.substr(7), "-", 60) >= 27;
}

/// The sign in the middle of a secret of an application: three letters, a digit, `Q~`, and more than 30.
bool isAzureSecret(std::string_view text, std::size_t at) {
  if (at < 5 || text[at - 1] != 'Q' || !isDigit(text[at - 2])) return false;
  return lengthOf(text.substr(at + 1), "~.-", 40) >= 31;
}

/// The sign before the data centre: 32 letters and `-us12`.
bool isMailchimpKey(std::string_view text, std::size_t at) {
  constexpr std::size_t kLetters = 32;
  if (at < kLetters || text.substr(at, 3) != "-us" || at + 3 >= text.size() || !isDigit(text[at + 3])) return false;
  if (at > kLetters && isWord(text[at - kLetters - 1])) return false;
  const std::string_view key = text.substr(at - kLetters, kLetters);
  return key.find_first_not_of("0123456789abcdef") == std::string_view::npos && !isFiller(key);
}

/// The first two letters of all that findToken() looks for: most places of a text are done with one look at it.
class TokenStarts {
 public:
  TokenStarts() {
    for (const TokenShape& one : kTokenShapes) starts_.set(pairOf(one.prefix));
    starts_.set(pairOf(std::string_view("ey")));
    starts_.set(pairOf(std::string_view("-u")));
    for (unsigned second = 0; second < 256; ++second) {
      for (const char first : {'M', 'N', 'O', '~'}) {
        starts_.set(pairOf(std::array<char, 2>{first, static_cast<char>(second)}));
      }
    }
  }
  [[nodiscard]] bool mayStart(std::string_view text, std::size_t at) const {
    return at + 1 < text.size() && starts_.test(pairOf(text.substr(at)));
  }

 private:
  static std::size_t pairOf(const auto& text) {
    return std::size_t{static_cast<unsigned char>(text[0])} << 8U | static_cast<unsigned char>(text[1]);
  }
  std::bitset<65536> starts_;
};

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
    if (part == 2 && isDocumented("", rest)) return false;
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
  static const TokenStarts starts;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!starts.mayStart(text, at)) continue;
    const auto& candidates = shapes[static_cast<unsigned char>(text[at])];
    const bool jwt = text[at] == 'e' && text.substr(at, 3) == "eyJ";
    if (text[at] == '~' && isAzureSecret(text, at)) return "Azure";
    if (text[at] == '-' && isMailchimpKey(text, at)) return "Mailchimp";
    const bool discord = text[at] == 'M' || text[at] == 'N' || text[at] == 'O';
    if (candidates.empty() && !jwt && !discord) continue;
    // Not in the middle of a word; a prefix that begins with a mark may follow one.
    if (at > 0 && isWord(text[at]) && isWord(text[at - 1]) && !text.substr(0, at).ends_with("\\n")) continue;
    if (discord && isDiscordToken(text.substr(at))) return "Discord";
    for (const TokenShape* shape : candidates) {
      if (matchesShape(*shape, text.substr(at)) && !isDocumented(shape->issuer, text.substr(at))) return shape->issuer;
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
  constexpr std::size_t kChosen = 8;
  if (isFiller(value) || !digit || value.size() < kChosen) return false;
  if (classes == 4) return true;
  if (value.size() < kLeast) return false;
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
    constexpr std::size_t kLeastPassword = 12;
    if (random ? password.size() >= kLeastPassword && looksRandom(password)
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
