#include "policy/rules/secret_content.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace caisson::policy {
namespace {

bool hasText(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

unsigned char byteAt(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// Whether what follows the first line of a key is the mark of an omission: "...", "<your key>", "${KEY}".
bool isOmitted(std::string_view body) {
  while (!body.empty()) {
    if (body.starts_with("\\n") || body.starts_with("\\r")) {
      body.remove_prefix(2);
    } else if (hasText(" \t\r\n\"'|+", body.substr(0, 1))) {
      body.remove_prefix(1);
    } else {
      break;
    }
  }
  constexpr std::string_view kMarks[] = {"...", "\xE2\x80\xA6", "<",   "{{",  "${",      "$(",
                                         "[",   "YOUR",         "xxx", "XXX", "REDACTED"};
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return body.starts_with(mark); });
}

bool hasPemKey(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    // Only the words of a PEM header: programs that look for keys have both texts, too.
    const std::string_view rest = text.substr(at + kBegin.size());
    const std::size_t end = rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ");
    const std::string_view words = rest.substr(0, end);
    const bool secret =
        hasText(words, "PRIVATE KEY") || hasText(words, "NKEY SEED") || rest.starts_with("OpenVPN Static key");
    if (!secret) continue;
    const std::size_t line = rest.find("-----");
    if (line == std::string_view::npos || !isOmitted(rest.substr(line + 5))) return true;
  }
  return false;
}

/// The content of an ASN.1 SEQUENCE in DER at the beginning; empty if there is none.
std::string_view derSequence(std::string_view text) {
  if (byteAt(text, 0) != 0x30) return {};
  const unsigned char length = byteAt(text, 1);
  if (length < 0x80) return text.substr(std::min<std::size_t>(2, text.size()));
  if (length > 0x84) return {};
  return text.substr(std::min<std::size_t>(2 + (length & 0x7FU), text.size()));
}

std::size_t derSize(std::string_view text) {
  const unsigned char length = byteAt(text, 1);
  if (length < 0x80) return 2U + length;
  std::size_t size = 0;
  const std::size_t digits = length & 0x7FU;
  for (std::size_t i = 0; i < digits && i < 4; ++i) size = size * 256 + byteAt(text, 2 + i);
  return 2 + digits + size;
}

enum class Der : std::uint8_t { none, secret, open };

/// PKCS #1, PKCS #8, SEC 1 and PKCS #12 begin with a version; a certificate and a public key with a sequence.
Der classifyDer(std::string_view text) {
  if (text.size() < 32) return Der::none;
  const std::string_view inner = derSequence(text);
  if (byteAt(inner, 0) == 0x02) return byteAt(inner, 1) == 1 && byteAt(inner, 2) <= 3 ? Der::secret : Der::open;
  if (byteAt(inner, 0) != 0x30) return Der::none;
  const std::size_t size = derSize(inner);
  const unsigned char next = size < inner.size() ? byteAt(inner, size) : 0;
  return next == 0x04 ? Der::secret : Der::open;  // PKCS #8 with a password; else a certificate or a public key
}

/// Binary forms that hold a key or a store of keys.
bool hasBinaryKey(std::string_view text) {
  constexpr std::string_view kJavaStores[] = {"\xFE\xED\xFE\xED", "\xCE\xCE\xCE\xCE"};
  constexpr std::string_view kKeepass = "\x03\xD9\xA2\x9A";
  if (text.starts_with(kJavaStores[0]) || text.starts_with(kJavaStores[1]) || text.starts_with(kKeepass)) return true;
  if (classifyDer(text) == Der::secret) return true;
  // An OpenPGP secret key: packet 5 in the old or the new form, then its length and version.
  const unsigned char tag = byteAt(text, 0);
  const unsigned char length = byteAt(text, 1);
  const std::size_t version = tag == 0x94      ? 2
                              : tag == 0x95    ? 3
                              : tag == 0x96    ? 5
                              : tag != 0xC5    ? 0
                              : length == 0xFF ? 6
                              : length >= 0xC0 ? 3
                                               : 2;
  return version != 0 && byteAt(text, version) >= 3 && byteAt(text, version) <= 6;
}

/// A list of 64 numbers, as Solana keeps a pair of keys.
bool isByteList(std::string_view text) {
  const std::string_view list = trimmed(text, " \t\r\n");
  return list.starts_with('[') && list.ends_with(']') && list.size() < 1024 && std::ranges::count(list, ',') == 63 &&
         list.find_first_not_of("[]0123456789, \r\n\t") == std::string_view::npos;
}

/// Forms of text that name no private key in a PEM header.
bool hasKeyDocument(std::string_view text) {
  constexpr std::string_view kBeginnings[] = {"PuTTY-User-Key-File-", "Private-key-format: ", "== ed25519v1-secret",
                                              "BORG_KEY ", "SSH PRIVATE KEY FILE FORMAT"};
  if (std::ranges::any_of(kBeginnings, [&](std::string_view one) { return text.starts_with(one); })) return true;
  if (text.starts_with("untrusted comment: ") && hasText(text.substr(0, text.find('\n')), "secret key")) return true;
  if (hasText(text, "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY")) return true;
  if (hasText(text, "[Interface]") && hasText(text, "PrivateKey")) return true;  // WireGuard
  if (hasText(text, "\"kty\"") && (hasText(text, "\"d\"") || hasText(text, "\"k\""))) return true;
  if (hasText(text, "\"ciphertext\"") && hasText(text, "\"kdf")) return true;
  return isByteList(text);
}

/// Objects of Kubernetes: a configuration with a client's key or token, and a Secret with values.
bool hasClusterSecret(std::string_view text) {
  const auto isKind = [&](std::string_view kind) {
    return hasText(text, "kind: " + std::string(kind) + "\n") || hasText(text, "kind: " + std::string(kind) + "\r") ||
           hasText(text, "\"kind\": \"" + std::string(kind) + "\"") ||
           hasText(text, "\"kind\":\"" + std::string(kind) + "\"");
  };
  if (isKind("Config") && (hasText(text, "client-key") || hasText(text, "token:") || hasText(text, "\"token\"") ||
                           hasText(text, "password:"))) {
    return true;
  }
  return isKind("Secret") && !hasText(text, "{{") &&
         (hasText(text, "\ndata:") || hasText(text, "stringData") || hasText(text, "\"data\""));
}

/// A single value: a word without blanks that is not a setting or a variable.
bool isRawValue(std::string_view text) {
  const std::string_view value = trimmed(text, " \t\r\n");
  constexpr std::size_t kLeast = 6, kMax = 512;
  // "key=value" is a setting; base64 ends with signs.
  const std::size_t sign = value.find('=');
  if (sign != std::string_view::npos && value.find_first_not_of('=', sign) != std::string_view::npos) return false;
  return value.size() >= kLeast && value.size() <= kMax && !hasText(value, "${") && !hasText(value, "{{") &&
         std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7F; });
}

constexpr std::string_view kPublicMarks[] = {"-----BEGIN CERTIFICATE",
                                             "-----BEGIN TRUSTED CERTIFICATE",
                                             "-----BEGIN X509 C",
                                             "PUBLIC KEY-----",
                                             "PUBLIC KEY BLOCK-----",
                                             "-----BEGIN DH PARAMETERS",
                                             "-----BEGIN EC PARAMETERS",
                                             "-----BEGIN PKCS7",
                                             "-----BEGIN CMS",
                                             "-----BEGIN NEW CERTIFICATE",
                                             "-----BEGIN OCSP",
                                             "-----BEGIN PGP SIGNATURE",
                                             "---- BEGIN SSH2 PUBLIC KEY",
                                             "-----BEGIN X942 DH",
                                             "-----BEGIN DSA PARAMETERS"};
constexpr std::string_view kPublicBeginnings[] = {"ssh-rsa ",    "ssh-ed25519 ", "ssh-dss ",
                                                  "ecdsa-sha2-", "sk-ssh-",      "sk-ecdsa-"};

std::optional<std::string_view> findPrivateOnly(std::string_view text, bool whole) {
  const bool empty = trimmed(text, " \t\r\n").empty();
  const bool shown =
      empty || hasOnlyPublicKeys(text) || classifyDer(text) == Der::open || isKnownFormat(text.substr(0, kFormatBytes));
  if (shown && (whole || (!empty && isKnownFormat(text.substr(0, kFormatBytes))))) return std::nullopt;
  return whole ? "not known to be public" : "too large to be judged";
}

}  // namespace

bool isKnownFormat(std::string_view beginning) {
  if (hasBinaryKey(beginning)) return false;
  constexpr std::string_view kMagic[] = {
      "\x7F"
      "ELF",
      "!<arch>\n",
      "PK\x03\x04",
      "\x1F\x8B",
      "BZh",
      "\xFD"
      "7zXZ",
      "\x28\xB5\x2F\xFD",
      "%PDF",
      "SQLite format 3"};
  if (std::ranges::any_of(kMagic, [&](std::string_view magic) { return beginning.starts_with(magic); })) return true;
  return beginning.find('\0') != std::string_view::npos && classifyDer(beginning) == Der::none;
}

bool hasPrivateKey(std::string_view text) { return hasPemKey(text) || hasKeyDocument(text) || hasBinaryKey(text); }

bool hasOnlyPublicKeys(std::string_view text) {
  if (hasPrivateKey(text)) return false;
  return std::ranges::any_of(kPublicMarks, [&](std::string_view mark) { return hasText(text, mark); }) ||
         std::ranges::any_of(kPublicBeginnings, [&](std::string_view mark) { return text.starts_with(mark); });
}

std::optional<std::string_view> secretIn(const SecretJudgement& judgement, std::string_view text, bool whole) {
  if (judgement.verdict == SecretVerdict::hide) return "its name";
  if (judgement.verdict == SecretVerdict::no) return std::nullopt;
  std::string narrow;
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {  // UTF-16
    narrow = text.substr(2);
    std::erase(narrow, '\0');
    text = narrow;
  }
  if (judgement.unnamed && isKnownFormat(text.substr(0, kFormatBytes))) return std::nullopt;
  const auto checks = [&](std::uint16_t any) { return (judgement.checks & any) != 0; };
  if (checks(kCheckKeys) && hasPrivateKey(text)) return "a private key";
  if (checks(kCheckPrivate)) return findPrivateOnly(text, whole);
  if (checks(kCheckTokens)) {
    if (const auto issuer = findToken(text)) return issuer;
    if (hasClusterSecret(text)) return "credentials of a cluster";
  }
  if (checks(kCheckKeys)) {
    if (const auto document = secretDocument(text)) return document;
  }
  if (checks(kCheckTable) && hasPasswordColumn(text)) return "a column of passwords";
  if (checks(kCheckCommands) && hasCommandPassword(text)) return "a password of a command";
  if (checks(kCheckSettings) && hasSecretSetting(text, false)) return "a password, token or key";
  if (checks(kCheckRandom) && hasSecretSetting(text, true)) return "a password, token or key";
  if (checks(kCheckSettings | kCheckAllUrls) && hasUrlPassword(text, false)) return "a URL with a password";
  if (checks(kCheckRandom | kCheckUrls) && hasUrlPassword(text, true)) return "a URL with a password";
  if (checks(kCheckRaw) && isRawValue(text)) return "a single value";
  if (whole || judgement.bounded) return std::nullopt;
  return "too large to be judged";
}

}  // namespace caisson::policy
