#include "cli/agent/secret_text.h"

#include <algorithm>
#include <string>

#include "audit/redact.h"
#include "base/text.h"
#include "cli/agent/command_secrets.h"
#include "cli/agent/named_secrets.h"
#include "cli/agent/secret_shapes.h"
#include "policy/rules/secret_content.h"

namespace caisson::cli {
namespace {

/// More of one word is not read, so it counts as a secret.
constexpr std::size_t kLongestWord = 4000;

/// A URL other than a plain one: keys stand before the host, in the query, and in segments of the path. `rest` is
/// without the scheme.
bool isTellingUrl(std::string_view rest) {
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

/// What follows the scheme of a URL, also of `https:/host` and `https:\\host`, which programs accept; empty if there is
/// none.
std::string_view withoutScheme(std::string_view word) {
  const std::size_t usual = word.find("://");
  if (usual != std::string_view::npos) return word.substr(usual + 3);
  if (word.find(':') == std::string_view::npos) return {};
  const std::string small = lowered(word);
  for (const std::string_view scheme : {"https:", "http:", "wss:", "ws:"}) {
    const std::size_t at = small.find(scheme);
    if (at == std::string::npos || (at > 0 && isLetter(word[at - 1]))) continue;
    std::string_view rest = word.substr(at + scheme.size());
    return rest.substr(std::min(rest.find_first_not_of("/\\"), rest.size()));
  }
  return {};
}

/// `host.example/path`, `localhost:8080/path`: the part before the path has the form of a host.
bool beginsWithHost(std::string_view word) {
  const std::string_view host = word.substr(0, word.find_first_of("/?;"));
  const auto in_host = [](char c) { return isLetter(c) || isDigit(c) || c == '.' || c == '-' || c == ':'; };
  return !host.empty() && host.front() != '.' && host.front() != '-' && std::ranges::all_of(host, in_host) &&
         host.find_first_of(".:") != std::string_view::npos;
}

/// `v1/path?`: a path of a server, before its query.
bool beginsWithPath(std::string_view word) {
  const std::string_view path = word.substr(0, word.find('?'));
  const auto in_path = [](char c) {
    return isLetter(c) || isDigit(c) || std::string_view("/-._~").find(c) != std::string_view::npos;
  };
  return path.size() < word.size() && path.find('/') != std::string_view::npos && std::ranges::all_of(path, in_path);
}

/// `?NAME=WORD`, `;NAME=WORD` in a URL with or without its scheme.
bool hasQuery(std::string_view word) {
  const bool url = !withoutScheme(word).empty();
  const std::size_t slash = word.find('/');
  if (!url && !beginsWithHost(word) && !beginsWithPath(word)) return false;
  for (std::size_t at = word.find_first_of("?;"); at != std::string_view::npos; at = word.find_first_of("?;", at + 1)) {
    const std::size_t sign = word.find('=', at);
    if (sign == std::string_view::npos) return false;
    const std::string_view name = word.substr(at + 1, sign - at - 1);
    const auto in_name = [](char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.'; };
    const bool path = url || slash < at || word[at] == '?';
    if (path && !name.empty() && std::ranges::all_of(name, in_name) && !isPlace(word.substr(sign + 1))) return true;
  }
  return false;
}

bool hasTellingUrl(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'`()<>,"), text.size());
    const std::string_view word = text.substr(0, end);
    if (hasQuery(word)) return true;
    const std::string_view url = withoutScheme(word.substr(0, word.find(';')));
    if (!url.empty() && isTellingUrl(url)) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

/// Whether one word of the name, by its marks and capitals, is a short one for a secret.
bool hasSecretPart(std::string_view name) {
  constexpr std::string_view kParts[] = {"pat",   "pin",  "dsn",      "jwt",  "otp",     "sas",  "pw",  "pswd",
                                         "creds", "cred", "passcode", "seed", "webhook", "keys", "psk", "totp"};
  std::string part;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const bool ends = i == name.size() || (!isLetter(name[i]) && !isDigit(name[i])) ||
                      (i > 0 && isUpperCase(name[i]) && isLowerCase(name[i - 1]));
    if (ends && isOneOf(lowered(part), kParts)) return true;
    if (ends) part.clear();
    if (i < name.size() && (isLetter(name[i]) || isDigit(name[i]))) part += name[i];
  }
  return false;
}

/// requirepass, PGPASS, bindpw, pass-phrase, Passwort: `name` has small letters.
bool endsAsSecretName(std::string name) {
  constexpr std::string_view kOtherKeys[] = {"hotkey", "monkey"};
  constexpr std::string_view kOtherPasses[] = {"bypass",  "compass",  "surpass", "trespass", "overpass", "underpass",
                                               "keepass", "lastpass", "gopass",  "unpass",   "multipass"};
  const auto ends = [&](std::string_view one) { return name.ends_with(one); };
  if (ends("/pass")) return true;  // user/pass
  std::erase_if(name, [](char c) { return c == '_' || c == '-'; });
  if (ends("key")) return std::ranges::none_of(kOtherKeys, ends);
  if (ends("pass"))
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos &&
           std::ranges::none_of(kOtherPasses, ends);
  if (ends("pw") && name.size() > 3) return true;
  constexpr std::string_view kInside[] = {"passphrase", "passwort", "passwört", "kennwort", "kennwört"};
  return std::ranges::any_of(kInside, [&](std::string_view one) { return name.find(one) != std::string::npos; });
}

}  // namespace

bool isSecretName(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  if (name.size() < 2 || name.size() > kLongestWord) return false;
  // Chinese has no blanks between the words before it.
  constexpr std::string_view kChinese[] = {"密码", "密碼", "口令"};
  if (std::ranges::any_of(kChinese, [&](std::string_view one) { return name.ends_with(one); })) return true;
  constexpr std::size_t kLongName = 64;  // a longer word is a name only if it has the letters of one
  const auto in_name = [](char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '-'; };
  if (name.size() > kLongName && !std::ranges::all_of(name, in_name)) return false;
  std::string small = lowered(name);
  std::erase_if(small, [](char c) { return c == '.'; });
  if (small.starts_with("author") && !small.starts_with("authoriz")) return false;
  if (audit::namesSecret(small) || endsAsSecretName(small)) return true;
  return hasSecretPart(name);
}

bool isTokenCount(std::string_view name) {
  const std::string small = lowered(name);
  if (small.find("token") == std::string::npos) return false;
  const auto has = [&](std::string_view part) { return small.find(part) != std::string::npos; };
  constexpr std::string_view kKeys[] = {"access", "auth", "api", "bearer", "refresh", "secret", "session"};
  if (std::ranges::any_of(kKeys, has)) return false;
  constexpr std::string_view kCounts[] = {"tokens", "max",    "min",       "limit",  "count",
                                          "budget", "window", "threshold", "length", "size"};
  return std::ranges::any_of(kCounts, has);
}

bool holdsSecret(std::string_view text, TextKind kind) {
  if (text.find('\0') != std::string_view::npos || text.find("PRIVATE KEY-----") != std::string_view::npos) return true;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(" \t\r\n\"'`()<>,;"), rest.size());
    const std::string_view piece = rest.substr(0, end);
    if (end > kLongestWord || audit::redactArgument(piece) != piece || looksRandom(piece) || hasUserAndPassword(piece))
      return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return (kind == TextKind::settings && hasTellingUrl(text)) || policy::findToken(text) ||
         policy::hasPrivateKey(text) || hasHeaderValue(text, kind == TextKind::settings) || hasCommandSecret(text) ||
         holdsNamedSecret(text, kind);
}

}  // namespace caisson::cli
