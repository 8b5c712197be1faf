#include "audit/redact.h"

#include <algorithm>
#include <array>

#include "base/shell_quote.h"
#include "base/text.h"
#include "base/utf8.h"

namespace caisson::audit {
namespace {

// More of a command cannot reach the preview; a megabyte script must not slow down a launch.
constexpr std::size_t kLookedAt = 4096;

constexpr std::array<std::string_view, 17> kSecretNames = {
    "password", "passwd", "passphrase", "pwd",        "secret",      "token",      "apikey", "api_key",   "api-key",
    "auth",     "bearer", "credential", "privatekey", "private_key", "access_key", "cookie", "session_id"};

constexpr std::array<std::string_view, 23> kTokenStarts = {
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_",  "github_pat_", "glpat-",   "xoxb-",    "xoxp-", "xoxa-", "xoxs-", "xapp-",
    "AKIA", "ASIA", "AIza", "npm_", "pypi-", "sk-",         "sk_live_", "rk_live_", "eyJ",   "ya29.", "hf_"};
constexpr std::size_t kShortestToken = 16;

bool isWord(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_' || letter == '-';
}

bool isTokenLetter(char letter) {
  return isWord(letter) || letter == '.' || letter == '/' || letter == '+' || letter == '=';
}

bool isBlank(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

/// Where the value that starts at `at` ends: at its closing quote, or at a blank or separator of shells and URLs.
std::size_t valueEnd(std::string_view text, std::size_t at) {
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const std::size_t close = text.find(text[at], at + 1);
    return close == std::string_view::npos ? text.size() : close + 1;
  }
  while (at < text.size() && !isBlank(text[at]) &&
         std::string_view("&;|<>\"'").find(text[at]) == std::string_view::npos)
    ++at;
  return at;
}

std::size_t skipBlanks(std::string_view text, std::size_t at) {
  while (at < text.size() && isBlank(text[at])) ++at;
  return at;
}

/// The word that ends just before `at`.
std::string_view wordBefore(std::string_view text, std::size_t at) {
  std::size_t start = at;
  while (start > 0 && isWord(text[start - 1])) --start;
  return text.substr(start, at - start);
}

struct Scanner {
  std::string_view text;
  std::string out;
  std::size_t at = 0;

  void redactUntil(std::size_t end) {
    out += kRedacted;
    at = end;
  }

  bool pem() {
    if (!text.substr(at).starts_with("-----BEGIN ")) return false;
    const std::size_t end = text.find("-----END ", at);
    const std::size_t line = end == std::string_view::npos ? std::string_view::npos : text.find("-----", end + 9);
    redactUntil(line == std::string_view::npos ? text.size() : line + 5);
    return true;
  }

  bool knownToken() {
    if (at > 0 && isWord(text[at - 1])) return false;
    for (const std::string_view start : kTokenStarts) {
      if (!text.substr(at).starts_with(start)) continue;
      std::size_t end = at;
      while (end < text.size() && isTokenLetter(text[end])) ++end;
      if (end - at < kShortestToken) continue;
      redactUntil(end);
      return true;
    }
    return false;
  }

  /// Redacts the value after a secret's name, if one is here: NAME=value, name: value (headers, JSON), `--name value`
  /// inside a script.
  bool namedValue() {
    const char here = text[at];
    if (here != '=' && here != ':' && !isBlank(here)) return false;
    std::string_view before = text.substr(0, at);
    if (before.ends_with('"') || before.ends_with('\'')) before.remove_suffix(1);
    const std::string_view name = wordBefore(before, before.size());
    if (name.empty() || (isBlank(here) && !name.starts_with("-")) || !namesSecret(name)) return false;
    std::size_t value = here == '=' ? at + 1 : skipBlanks(text, at + 1);
    out += text.substr(at, value - at);
    // "Authorization: Bearer xyz": the scheme is not secret.
    for (const std::string_view scheme : {"Bearer ", "Basic ", "Token ", "bearer ", "basic ", "token "}) {
      if (!text.substr(value).starts_with(scheme)) continue;
      out += scheme;
      value += scheme.size();
      break;
    }
    const std::size_t end = valueEnd(text, value);
    at = value;
    if (end > value) redactUntil(end);
    return true;
  }

  /// Redacts `user:password` in scheme://user:password@host, if "://" is here.
  bool userInfo() {
    if (!text.substr(at).starts_with("://")) return false;
    std::size_t end = at + 3;
    while (end < text.size() && !isBlank(text[end]) && text[end] != '/' && text[end] != '"' && text[end] != '\'') ++end;
    const std::size_t sign = text.substr(0, end).rfind('@');
    out += "://";
    at += 3;
    if (sign != std::string_view::npos && sign >= at) redactUntil(sign);
    return true;
  }
};

/// Previews are only displayed: marks such as [redacted] and revisions such as HEAD~1 stay readable.
constexpr std::string_view kPlainInPreview = "[]~^";

std::string cutTo(std::string_view text, std::size_t characters) {
  std::size_t bytes = 0;
  for (std::size_t count = 0; bytes < text.size(); ++count) {
    if (count == characters) return std::string(text.substr(0, bytes)) + "...";
    bytes += firstCharacter(text.substr(bytes)).length;
  }
  return std::string(text);
}

bool isSecretFlag(std::string_view argument) {
  return argument.starts_with("-") && argument.find('=') == std::string_view::npos && namesSecret(argument);
}

}  // namespace

bool namesSecret(std::string_view name) {
  std::string small(name);
  std::transform(small.begin(), small.end(), small.begin(), lower);
  return std::any_of(kSecretNames.begin(), kSecretNames.end(),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; }) ||
         small == "pass" || small.ends_with("_pass") || small.ends_with("-pass") || small.ends_with("_key") ||
         small == "key";
}

std::string redactArgument(std::string_view argument, bool after_secret_flag) {
  if (after_secret_flag && !argument.empty()) return std::string(kRedacted);
  Scanner scanner{argument.substr(0, kLookedAt), {}, 0};
  while (scanner.at < scanner.text.size()) {
    if (scanner.pem() || scanner.knownToken() || scanner.userInfo() || scanner.namedValue()) continue;
    scanner.out += scanner.text[scanner.at++];
  }
  return std::move(scanner.out);
}

std::string redactedPreview(std::span<const std::string> command, std::size_t characters) {
  std::string line;
  bool secret_next = false;
  bool user_next = false;
  for (const std::string& argument : command) {
    if (line.size() > kLookedAt) break;
    if (!line.empty()) line += ' ';
    // `curl -u name:password`: keep the name.
    if (user_next && argument.find(':') != std::string::npos) {
      line += shellQuoted(argument.substr(0, argument.find(':') + 1) + std::string(kRedacted), kPlainInPreview);
    } else {
      line += shellQuoted(redactArgument(argument, secret_next), kPlainInPreview);
    }
    secret_next = isSecretFlag(argument);
    user_next = argument == "-u" || argument == "--user";
  }
  return cutTo(line, characters);
}

}  // namespace caisson::audit
