// Settings whose key says that the value is a password, a token or a key.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "policy/rules/secret_content.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kSecretParts[] = {"password",    "passwd",       "passphrase",   "passwort",   "apikey",
                                             "apitoken",    "secretkey",    "accesskey",    "privatekey", "authtoken",
                                             "accesstoken", "refreshtoken", "clientsecret", "authident"};
constexpr std::string_view kSecretEndings[] = {
    "secret",     "token",         "auth",          "pass",         "pwd",          "psk",           "bearer",
    "oauth",      "httpbasic",     "authorization", "credentials",  "credential",   "authkey",       "sessionkey",
    "signingkey", "encryptionkey", "sharedkey",     "masterkey",    "presharedkey", "secretkeybase", "wepkey0",
    "mnemonic",   "seed",          "salt",          "securestring", "githuboauth",  "tokens"};
/// A key that ends with one of these says something about a secret.
constexpr std::string_view kAboutEndings[] = {
    "file",     "path",      "name",      "ref",      "env",   "length",  "policy",      "ttl",
    "expiry",   "field",     "url",       "uri",      "type",  "command", "cmd",         "eval",
    "expires",  "expiresin", "expiresat", "endpoint", "size",  "min",     "max",         "count",
    "enabled",  "required",  "id",        "header",   "label", "hint",    "placeholder", "reset",
    "provider", "store",     "helper",    "location", "dir",   "format"};
constexpr std::string_view kPlaceholders[] = {
    "true",   "false",  "null",  "none",   "nil",      "undefined", "password", "passwd", "secret", "token",
    "string", "text",   "ask",   "prompt", "required", "optional",  "yes",      "no",     "hidden", "basic",
    "bearer", "always", "never", "plain",  "~",        "|",         ">",        "-"};
constexpr std::string_view kPlaceholderBeginnings[] = {"your",
                                                       "<",
                                                       "changeme",
                                                       "change_me",
                                                       "change-me",
                                                       "change this",
                                                       "replace",
                                                       "placeholder",
                                                       "insert",
                                                       "todo",
                                                       "***",
                                                       "...",
                                                       "put your",
                                                       "password_here",
                                                       "{{",
                                                       "{env",
                                                       "{file",
                                                       "${",
                                                       "$(",
                                                       "%(",
                                                       "%env",
                                                       "#{",
                                                       "@@",
                                                       "[[",
                                                       "env(",
                                                       "env.",
                                                       "process.env",
                                                       "os.environ",
                                                       "os.getenv",
                                                       "getenv(",
                                                       "file://",
                                                       "vault:",
                                                       "op://",
                                                       "ref+",
                                                       "!vault",
                                                       "!reference",
                                                       "!secret",
                                                       "aws-ssm",
                                                       "arn:aws:secretsmanager",
                                                       "sops:",
                                                       "enc[",
                                                       "/run/secrets",
                                                       "secretkeyref",
                                                       "__"};

bool isNameLetter(char c) {
  return isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c == '-' || c == '.';
}

/// The name of a key in lower case, without separators.
std::string compact(std::string_view name) {
  std::string text;
  for (const char c : name)
    if (c != '_' && c != '-' && c != '.') text += lower(c);
  return text;
}

bool endsWithOne(std::string_view text, auto& endings) {
  return std::ranges::any_of(endings, [&](std::string_view one) { return text.ends_with(one); });
}

/// A name such as STRIPE_KEY, whose value is long if it is one.
bool isVariableKey(std::string_view name) {
  return name.ends_with("_KEY") || name.ends_with("_key") || name.ends_with("Key") || name == "key" ||
         name.ends_with("_SALT") || (name.starts_with("BUNDLE_") && name.find("__") != std::string_view::npos);
}

bool isSecretName(std::string_view name) {
  const std::string text = compact(name);
  if (endsWithOne(text, kSecretEndings)) return true;
  const bool has =
      std::ranges::any_of(kSecretParts, [&](std::string_view part) { return text.find(part) != std::string::npos; });
  return has && !endsWithOne(text, kAboutEndings);
}

bool isPlaceholder(std::string_view name, std::string_view value) {
  const std::string text = lowered(value);
  constexpr std::size_t kLeast = 3;
  if (value.size() < kLeast) return true;
  if (text.find_first_not_of("0123456789.,_") == std::string::npos && compact(name).ends_with("tokens")) return true;
  if (std::ranges::find(kPlaceholders, text) != std::end(kPlaceholders)) return true;
  if (std::ranges::any_of(kPlaceholderBeginnings, [&](std::string_view one) { return text.starts_with(one); }))
    return true;
  if (value.front() == '$' && value.size() > 1 && (isNameLetter(value[1]) && !isDigit(value[1]))) return true;
  if (value.find_first_not_of("xX*.-_") == std::string_view::npos) return true;
  const bool phrase = compact(name).find("pass") != std::string::npos ||
                      compact(name).find("mnemonic") != std::string::npos || compact(name).ends_with("salt") ||
                      compact(name).ends_with("key");
  // A sentence, or an expression of a program.
  if (!phrase && value.find(' ') != std::string_view::npos) return true;
  return value.find('(') != std::string_view::npos && value.find(')') != std::string_view::npos &&
         value.find(' ') == std::string_view::npos && value.find_first_of("!@#%^&*") == std::string_view::npos;
}

/// Reads the value that follows a key: `= value`, `: "value"`, `=> 'value'`, `>value<`, `" value="value"`, ", 'value'".
class SettingValue {
 public:
  /// Only what is near is looked at: many keys without an end of the line must not take the square of the length.
  SettingValue(std::string_view text, std::size_t at, bool first_in_line)
      : text_(text.substr(at, kNear)), first_(first_in_line) {}

  std::string_view read() {
    const bool quoted = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'' || text_[at_] == '`');
    if (quoted) ++at_;
    const std::size_t before = at_;
    skip(" \t");
    if (rest().starts_with("]")) ++at_;  // $config['password'] = ...
    skip(" \t");
    if (rest().starts_with("value=")) {
      at_ += 6;
    } else if (rest().starts_with("=>") || rest().starts_with(":=") || rest().starts_with("==")) {
      at_ += 2;
    } else if (rest().starts_with('=') || rest().starts_with(':') || rest().starts_with('>') ||
               (quoted && rest().starts_with(','))) {
      ++at_;
    } else if (rest().starts_with('{')) {
    } else if (at_ == before || !(first_ || rest().starts_with('"'))) {
      return {};
    }
    skip(" \t");
    return value(2);
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  void skip(std::string_view blanks) {
    while (at_ < text_.size() && blanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  /// `depth`: how many objects are entered, as in `"github-oauth": {"github.com": "value"}`.
  std::string_view value(int depth) {
    if (rest().starts_with('|') || rest().starts_with('>')) {  // a block of YAML
      at_ = std::min(text_.find('\n', at_), text_.size());
      skip(" \t\r\n");
    }
    if (rest().starts_with('{') && !rest().starts_with("{{") && depth > 0) {
      const std::size_t sign = text_.find_first_of(":=", at_);
      if (sign == std::string_view::npos) return {};
      at_ = sign + 1;
      skip(" \t\r\n");
      return value(depth - 1);
    }
    if (rest().starts_with('[') && !rest().starts_with("[[")) ++at_;
    skip(" \t");
    std::string_view found;
    if (!rest().empty() && (rest()[0] == '"' || rest()[0] == '\'')) {
      const std::size_t end = text_.find_first_of(std::string{rest()[0], '\n'}, at_ + 1);
      found = text_.substr(at_ + 1, std::min(end, text_.size()) - at_ - 1);
    } else {
      const std::size_t end = std::min(text_.find_first_of("\r\n<,;\"'", at_), text_.size());
      found = trimmed(text_.substr(at_, end - at_));
      if (const std::size_t comment = found.find(" #"); comment != std::string_view::npos)
        found = trimmed(found.substr(0, comment));
    }
    for (const std::string_view scheme : {"Bearer ", "Basic ", "bearer ", "basic ", "token ", "Token "}) {
      if (found.starts_with(scheme)) found.remove_prefix(scheme.size());
    }
    return found;
  }

  static constexpr std::size_t kNear = 256;
  std::string_view text_;
  std::size_t at_ = 0;
  bool first_;  ///< the key begins its line, so that a blank may separate it from the value
};

bool isSecretValue(std::string_view name, std::string_view value) {
  if (isSecretName(name)) return !isPlaceholder(name, value);
  const std::string text = compact(name);
  if (text == "user" || text == "proxyuser") {  // curl: name:password
    return value.find(':') != std::string_view::npos && value.find("//") == std::string_view::npos &&
           !isPlaceholder(name, value);
  }
  constexpr std::size_t kKeySize = 16;
  return isVariableKey(name) && value.size() >= kKeySize && value.find_first_of(" /\\") == std::string_view::npos &&
         std::ranges::any_of(value, isDigit) && !isPlaceholder(name, value);
}

constexpr std::string_view kHashes[] = {":$6$",  ":$5$",  ":$1$",    ":$y$",   ":$2y$",
                                        ":$2b$", ":$2a$", ":$apr1$", ":{SHA}", ":{SSHA}"};

}  // namespace

bool hasSecretSetting(std::string_view text, bool random) {
  if (!random &&
      std::ranges::any_of(kHashes, [&](std::string_view hash) { return text.find(hash) != std::string_view::npos; }))
    return true;
  // Encrypted, and meant to be stored with the code.
  for (const std::string_view sealed : {"kind: SealedSecret", "kind: ExternalSecret"}) {
    if (text.find(sealed) != std::string_view::npos) return false;
  }
  bool line_start = true;
  constexpr std::size_t kMaxKey = 128;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      line_start = true;
      ++at;
      continue;
    }
    if (line_start && (text[at] == '#' || text[at] == ';')) {  // a comment
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (!isNameLetter(text[at])) {
      line_start = line_start && (text[at] == ' ' || text[at] == '\t');
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && isNameLetter(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    if (name.size() <= kMaxKey && (isSecretName(name) || isVariableKey(name) || lowered(name).ends_with("user"))) {
      const std::string_view value = SettingValue(text, end, line_start).read();
      if ((!random || looksRandom(value)) && isSecretValue(name, value)) return true;
    }
    line_start = false;
    at = end;
  }
  return false;
}

}  // namespace caisson::policy
