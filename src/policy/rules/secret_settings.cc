// Settings whose key says that the value is a password, a token or a key.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text.h"
#include "policy/rules/secret_content.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kSecretParts[] = {
    "password",   "passwd",    "passphrase",  "passwort",     "apikey",       "apitoken",  "secretkey", "accesskey",
    "privatekey", "authtoken", "accesstoken", "refreshtoken", "clientsecret", "authident", "rootpw",    "passcode"};
constexpr std::string_view kSecretEndings[] = {
    "secret",     "token",         "auth",          "pass",         "pwd",          "psk",           "bearer",
    "oauth",      "httpbasic",     "authorization", "credentials",  "credential",   "authkey",       "sessionkey",
    "signingkey", "encryptionkey", "sharedkey",     "masterkey",    "presharedkey", "secretkeybase", "wepkey0",
    "mnemonic",   "seed",          "salt",          "securestring", "githuboauth",  "tokens",        "totp"};
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
                                                       "django-insecure-",
                                                       "__"};
/// Endings of values that manuals show: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".
constexpr std::string_view kExampleEndings[] = {"EXAMPLEKEY", "EXAMPLE"};

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
  constexpr std::size_t kLeast = 3;
  if (name.size() < kLeast) return false;
  const std::string text = compact(name);
  constexpr std::string_view kNames[] = {"loadcredential", "importcredential", "conditioncredential"};  // systemd
  if (std::ranges::find(kNames, text) != std::end(kNames)) return false;
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
  constexpr std::size_t kAddress = 42;  // of a contract in a chain
  if (value.size() == kAddress && value.starts_with("0x")) return true;
  if (std::ranges::any_of(kExampleEndings, [&](std::string_view one) { return value.ends_with(one); })) return true;
  if (value.front() == '$' && value.size() > 1 && (isNameLetter(value[1]) && !isDigit(value[1]))) return true;
  if (value.find_first_not_of("xX*.-_") == std::string_view::npos) return true;
  const bool phrase = compact(name).find("pass") != std::string::npos ||
                      compact(name).find("mnemonic") != std::string::npos || compact(name).ends_with("salt") ||
                      compact(name) == "rootpw" || compact(name).ends_with("key");
  // A sentence, or an expression of a program.
  if (!phrase && value.find(' ') != std::string_view::npos) return true;
  return value.find('(') != std::string_view::npos && value.find(')') != std::string_view::npos &&
         value.find(' ') == std::string_view::npos && value.find_first_of("!@#%^&*") == std::string_view::npos;
}

/// What may separate a key from its value.
enum class SettingSeparation : std::uint8_t {
  sign,   ///< = or :
  blank,  ///< or a blank: the key begins its line
  comma,  ///< or a comma: a symbol of Ruby
};

/// Reads the value that follows a key: `= value`, `: "value"`, `=> 'value'`, `>value<`, `" value="value"`, ", 'value'".
/// A key may also be the value of a name: `name: key` and then `value: x`, `<name>key</name><value>x</value>`.
class SettingValue {
 public:
  /// Only what is near is looked at: many keys without an end of the line must not take the square of the length.
  SettingValue(std::string_view text, std::size_t at, SettingSeparation separation)
      : text_(text.substr(at, kNear)), separation_(separation) {}

  std::string_view read() {
    const bool quoted = at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'' || text_[at_] == '`');
    if (quoted) ++at_;
    const std::size_t before = at_;
    skip(" \t");
    if (rest().starts_with("]")) ++at_;  // $config['password'] = ...
    if (const auto pair = valueOfPair(); !pair.empty()) return pair;
    skip(" \t");
    if (rest().starts_with("value=")) {
      at_ += 6;
    } else if (rest().starts_with("=>") || rest().starts_with(":=") || rest().starts_with("==")) {
      at_ += 2;
    } else if (rest().starts_with('=') || rest().starts_with(':') || rest().starts_with('>') ||
               ((quoted || separation_ == SettingSeparation::comma) && rest().starts_with(','))) {
      ++at_;
    } else if (rest().starts_with('{')) {
    } else if (at_ == before || !(separation_ == SettingSeparation::blank || rest().starts_with('"'))) {
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

  /// Moves from `<Password>` to the text of a first element in it, `<Value>`.
  bool entersElement() {
    const std::size_t next = at_ > 0 && text_[at_ - 1] == '>' ? text_.find_first_not_of(" \t\r\n", at_) : at_;
    if (next == std::string_view::npos || lowered(text_.substr(next, 7)) != "<value>") return false;
    at_ = next + 7;
    return true;
  }

  /// The value of `"name": "key", "value": "x"` and of `<name>key</name> <value>x</value>`; moves only if there is one.
  std::string_view valueOfPair() {
    std::size_t at = text_.find_first_not_of(" \t\r\n,", at_);
    if (at == std::string_view::npos) return {};
    std::string_view left = text_.substr(at);
    if (left.starts_with("</")) {  // the next element
      const std::size_t end = left.find('>');
      const std::size_t next = end == std::string_view::npos ? end : left.find_first_not_of(" \t\r\n", end + 1);
      if (next == std::string_view::npos || left[next] != '<' || left.substr(next, 2) == "</") return {};
      const std::size_t open = left.find('>', next);
      if (open == std::string_view::npos || left[open - 1] == '/') return {};
      const std::string tag = lowered(left.substr(next + 1, open - next - 1));
      if (!tag.starts_with("value") && !tag.starts_with("string") && !tag.starts_with("data")) return {};
      return left.substr(open + 1, left.find('<', open) - open - 1);
    }
    if (at == at_) return {};
    if (left.starts_with('"') || left.starts_with('\'')) left.remove_prefix(1);
    for (const std::string_view word : {"value", "Value", "ParameterValue", "defaultValue"}) {
      if (!left.starts_with(word)) continue;
      left.remove_prefix(word.size());
      if (left.starts_with('"') || left.starts_with('\'')) left.remove_prefix(1);
      const std::size_t sign = left.find_first_not_of(" \t");
      if (sign == std::string_view::npos || (left[sign] != ':' && left[sign] != '=')) return {};
      at_ = static_cast<std::size_t>(left.data() - text_.data()) + sign + 1;
      skip(" \t");
      return value(0);
    }
    return {};
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
    if (entersElement()) return value(0);
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
  SettingSeparation separation_;
};

bool isCookieName(std::string_view name) {
  const std::string text = compact(name);
  return text == "cookie" || text == "setcookie";
}

bool isSecretValue(std::string_view name, std::string_view value) {
  if (isSecretName(name)) return !isPlaceholder(name, value);
  constexpr std::size_t kCookieSize = 20;
  const std::size_t sign = value.find('=');
  if (isCookieName(name)) {
    return sign != std::string_view::npos && value.size() >= kCookieSize && std::ranges::any_of(value, isDigit);
  }
  const std::string text = compact(name);
  // Consul, Serf and Nomad: the key of the gossip.
  if (text == "encrypt") return value.size() >= kCookieSize && value.ends_with('=') && looksRandom(value);
  if (text == "user" || text == "proxyuser") {  // curl: name:password
    return value.find(':') != std::string_view::npos && value.find("//") == std::string_view::npos &&
           !isPlaceholder(name, value);
  }
  constexpr std::size_t kKeySize = 16;
  return isVariableKey(name) && value.size() >= kKeySize && value.find_first_of(" /\\") == std::string_view::npos &&
         std::ranges::any_of(value, isDigit) && !isPlaceholder(name, value);
}

bool mayBeSetting(std::string_view name) {
  return isSecretName(name) || isVariableKey(name) || isCookieName(name) || lowered(name).ends_with("user") ||
         name == "encrypt";
}

/// The word in "arn:aws:secretsmanager:...:secret:name".
bool isPartOfResource(std::string_view text, std::size_t at, std::size_t end) {
  return at > 1 && text[at - 1] == ':' && text[at - 2] != ':' && end + 1 < text.size() && text[end] == ':' &&
         isNameLetter(text[end + 1]);
}

SettingSeparation separationAt(std::string_view text, std::size_t at, bool line_start) {
  if (line_start || text.substr(at).starts_with("insecure-password")) return SettingSeparation::blank;  // HAProxy
  const std::string_view before = text.substr(at < 6 ? 0 : at - 6, std::min<std::size_t>(at, 6));
  if (before == "IPSec " || before == "Xauth ") return SettingSeparation::blank;  // vpnc
  return before.ends_with(':') && !before.ends_with("::") ? SettingSeparation::comma : SettingSeparation::sign;
}

constexpr std::string_view kHashes[] = {":$6$",  ":$5$",    ":$1$",   ":$y$",    ":$2y$", ":$2b$",
                                        ":$2a$", ":$apr1$", ":{SHA}", ":{SSHA}", ":$7$"};

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
    const bool comment = text[at] == ';' || (text[at] == '#' && !text.substr(at).starts_with("#define"));
    if (line_start && comment) {
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
    if (name.size() <= kMaxKey && mayBeSetting(name) && !isPartOfResource(text, at, end)) {
      const std::string_view value = SettingValue(text, end, separationAt(text, at, line_start)).read();
      if ((!random || looksRandom(value)) && isSecretValue(name, value)) return true;
    }
    line_start = false;
    at = end;
  }
  return false;
}

}  // namespace caisson::policy
