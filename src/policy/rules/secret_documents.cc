// Files of known programs, tables and commands that hold passwords without a setting's name before them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "policy/rules/secret_content.h"

namespace caisson::policy {
namespace {

constexpr std::size_t kMaxLine = 4096;

bool holdsText(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string_view lineAt(std::string_view text, std::size_t at) {
  return text.substr(at, std::min(text.find_first_of("\r\n", at), at + kMaxLine) - at);
}

/// Calls `test` with each line until one passes.
template <class Test>
bool anyLine(std::string_view text, const Test& test) {
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = lineAt(text, at);
    if (test(line)) return true;
    at = std::max(text.find('\n', at), at);
    if (at == std::string_view::npos) break;
    ++at;
  }
  return false;
}

/// The fields of a line, without quotes.
std::vector<std::string> fieldsOf(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == separator && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::string withoutBlanks(std::string_view text) {
  std::string found = lowered(text);
  std::erase_if(found, [](char c) { return c == ' ' || c == '_' || c == '-'; });
  return found;
}

/// `host:5432:database:user:password`
bool isDatabaseLine(std::string_view line) {
  if (!holdsText(line, ":5432:") && !holdsText(line, ":6432:") && !line.starts_with("*:")) return false;
  if (line.front() == '#' || holdsText(line, "//") || holdsText(line, " ")) return false;
  const std::vector<std::string> parts = fieldsOf(line, ':');
  if (parts.size() < 5 || parts[3].empty() || parts[4].size() < 4 || parts[4].find_first_of("${<") == 0) return false;
  return parts[1] == "5432" || parts[1] == "6432" || parts[1] == "*";
}

/// `machine HOST login USER password PASSWORD`, also over several lines.
bool hasNetworkLogin(std::string_view text) {
  for (std::size_t at = text.find("machine "); at != std::string_view::npos; at = text.find("machine ", at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::vector<std::string_view> words;
    for (std::string_view rest = text.substr(at, kMaxLine); words.size() < 6 && !rest.empty();) {
      const std::size_t begin = std::min(rest.find_first_not_of(" \t\r\n"), rest.size());
      const std::size_t end = std::min(rest.find_first_of(" \t\r\n", begin), rest.size());
      words.push_back(rest.substr(begin, end - begin));
      rest.remove_prefix(end);
    }
    if (words.size() == 6 && words[2] == "login" && words[4] == "password" && words[5].find_first_of("<${") != 0) {
      return true;
    }
  }
  return false;
}

/// Cookies as browsers' tools export them.
bool hasCookies(std::string_view text) {
  if (text.starts_with("# Netscape HTTP Cookie File") || text.starts_with("# HTTP Cookie File")) {
    return anyLine(text, [](std::string_view line) { return std::ranges::count(line, '\t') == 6; });
  }
  if (!holdsText(text, "\"httpOnly\"") || !holdsText(text, "\"domain\"")) return false;
  constexpr std::string_view kValue = "\"value\"";
  for (std::size_t at = text.find(kValue); at != std::string_view::npos; at = text.find(kValue, at + 1)) {
    const std::size_t begin = text.find_first_not_of(" \t:\"", at + kValue.size());
    if (begin == std::string_view::npos) break;
    if (looksRandom(text.substr(begin, std::min(text.find_first_of("\",\r\n", begin), text.size()) - begin)))
      return true;
  }
  return false;
}

/// Secrets of one-time passwords, as a URL or as the file of a login module. The secret that RFCs and manuals show does
/// not count.
bool hasOneTimeSecret(std::string_view text) {
  if (holdsText(text, "otpauth-migration://offline?data=")) return true;
  if (holdsText(text, "\n\" TOTP_AUTH") || holdsText(text, "\n\" HOTP_COUNTER")) return true;
  for (std::size_t at = text.find("otpauth://"); at != std::string_view::npos; at = text.find("otpauth://", at + 1)) {
    const std::string_view url = text.substr(at, std::min(text.find_first_of(" \r\n\"'<>`", at), text.size()) - at);
    const std::size_t secret = url.find("secret=");
    if (secret == std::string_view::npos) continue;
    const std::string_view value = url.substr(secret + 7, url.find('&', secret) - secret - 7);
    if (value.size() >= 16 && !value.starts_with("JBSWY3DPEHPK3PXP") && value.find_first_of("${<%.*") != 0) return true;
  }
  return false;
}

/// A literal after `at`, without quotes; empty for a variable, an expression or a placeholder.
std::string_view literalAt(std::string_view line, std::size_t at) {
  at = std::min(line.find_first_not_of(" \t", at), line.size());
  if (at == line.size()) return {};
  const char quote = line[at];
  const bool quoted = quote == '"' || quote == '\'';
  if (quoted) ++at;
  const std::size_t end = std::min(quoted ? line.find(quote, at) : line.find_first_of(" \t|;&)\"'`", at), line.size());
  const std::string_view value = line.substr(at, end - at);
  if (value.find_first_of("$%<{(`") != std::string_view::npos &&
      (quote != '\'' || value.find_first_of("$%<{(`") == 0)) {
    return {};
  }
  return value;
}

/// A value that a person chose as a password: letters and digits or marks.
bool isChosenPassword(std::string_view value) {
  constexpr std::size_t kLeast = 6;
  const auto isLetter = [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  return value.size() >= kLeast && std::ranges::any_of(value, isLetter) &&
         std::ranges::any_of(value, [&](char c) { return isDigit(c); }) && value.find(' ') == std::string_view::npos;
}

struct CommandOption {
  std::string_view command;  ///< before the option, on the same line
  std::string_view option;   ///< with the blank before the value
  bool random;               ///< the value must look random
};
constexpr CommandOption kCommandOptions[] = {{"sshpass", " -p", false},
                                             {"convertto-securestring", "-string ", false},
                                             {"convertto-securestring", "convertto-securestring ", false},
                                             {"mysql", " -p", false},
                                             {"mariadb", " -p", false},
                                             {"docker", " -p ", true},
                                             {"podman", " -p ", true},
                                             {"helm", "--password ", true},
                                             {"", "--password ", true},
                                             {"", "-password ", true},
                                             {"", "--token ", true},
                                             {"", "--api-key ", true},
                                             {"", "--secret ", true},
                                             {"", "-storepass ", false},
                                             {"", "-keypass ", false},
                                             {"", "--ks-pass pass:", false},
                                             {"", " -passin pass:", false},
                                             {"", " -passout pass:", false},
                                             {"redis-cli", " -a ", true},
                                             {"ldap", " -w ", false},
                                             {"smbclient", "-u ", false},
                                             {"curl", " -u ", false},
                                             {"curl", "--user ", false},
                                             {"wget", "--password=", false}};

/// `echo PASSWORD | sudo -S`
bool pipesPassword(std::string_view line, std::string_view folded) {
  const std::size_t echo = std::min(folded.find("echo "), folded.find("printf "));
  const std::size_t pipe = folded.find('|', echo == std::string_view::npos ? folded.size() : echo);
  if (pipe == std::string_view::npos) return false;
  const std::string_view reader = folded.substr(pipe);
  constexpr std::string_view kReaders[] = {"sudo -s",    "--password-stdin", "chpasswd",    "--stdin",
                                           "cryptsetup", "--passphrase-fd",  "--with-token"};
  const bool reads = std::ranges::any_of(kReaders, [&](std::string_view one) { return holdsText(reader, one); });
  return reads && isChosenPassword(literalAt(line, folded.find(' ', echo) + 1));
}

bool isPasswordCommand(std::string_view line) {
  if (line.find_first_not_of(" \t") == std::string_view::npos || line[line.find_first_not_of(" \t")] == '#')
    return false;
  const std::string folded = lowered(line);
  for (const CommandOption& one : kCommandOptions) {
    const std::size_t command = folded.find(one.command);
    if (command == std::string::npos) continue;
    const std::size_t at = folded.find(one.option, command);
    if (at == std::string::npos) continue;
    std::string_view value = literalAt(line, at + one.option.size());
    if (one.command == "convertto-securestring" && !holdsText(folded, "-asplaintext")) continue;
    if (one.command == "curl" || one.command == "smbclient") {  // name:password
      const std::size_t sign = value.find_first_of(":%");
      if (sign == std::string_view::npos || holdsText(value, "//")) continue;
      value.remove_prefix(sign + 1);
    }
    if (one.random ? looksRandom(value) : isChosenPassword(value)) return true;
  }
  return pipesPassword(line, folded);
}

/// sbt: Credentials("realm", "host", "user", "password")
bool isBuildCredential(std::string_view line) {
  const std::size_t at = line.find("Credentials(\"");
  return at != std::string_view::npos && std::ranges::count(line.substr(at), '"') == 8;
}

}  // namespace

std::optional<std::string_view> secretDocument(std::string_view text) {
  if (hasCookies(text)) return "cookies";
  if (hasOneTimeSecret(text)) return "the secret of one-time passwords";
  if (holdsText(text, "<KeePassFile")) return "a store of passwords";
  if (holdsText(text, "\"login\"") && holdsText(text, "\"uris\"") && holdsText(text, "\"reprompt\"")) {
    return "a store of passwords";
  }
  if (holdsText(text, "Unseal Key 1: ") || holdsText(text, "\"unseal_keys_b64\"")) return "keys of Vault";
  if (hasNetworkLogin(text)) return "a password, token or key";
  if (anyLine(text, isDatabaseLine)) return "a password, token or key";
  return std::nullopt;
}

bool hasCommandPassword(std::string_view text) {
  return anyLine(text, [](std::string_view line) { return isPasswordCommand(line) || isBuildCredential(line); });
}

bool hasPasswordColumn(std::string_view text) {
  const std::string_view first = lineAt(text, text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  const char separator = holdsText(first, "\t") ? '\t' : holdsText(first, ";") ? ';' : ',';
  const std::vector<std::string> names = fieldsOf(first, separator);
  constexpr std::size_t kMaxColumns = 40;
  if (names.size() < 2 || names.size() > kMaxColumns) return false;
  std::vector<std::size_t> columns;
  bool place = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = withoutBlanks(names[i]);
    constexpr std::string_view kSecret[] = {"password",  "passwd",     "pwd",      "secret",          "token",
                                            "apikey",    "passphrase", "totp",     "secretaccesskey", "loginpassword",
                                            "logintotp", "otpauth",    "kennwort", "passwort"};
    if (std::ranges::find(kSecret, name) != std::end(kSecret)) columns.push_back(i);
    // An export of a store of passwords says where each one is used.
    constexpr std::string_view kPlaces[] = {"url",  "urls",     "website", "loginuri", "hostname",        "host",
                                            "site", "webseite", "server",  "ip",       "consoleloginlink"};
    place = place || std::ranges::find(kPlaces, name) != std::end(kPlaces);
  }
  if (columns.empty()) return false;
  bool header = true;
  return anyLine(text, [&](std::string_view line) {
    if (std::exchange(header, false)) return false;
    const std::vector<std::string> values = fieldsOf(line, separator);
    return std::ranges::any_of(columns, [&](std::size_t column) {
      return column < values.size() && (place ? values[column].size() >= 4 : looksRandom(values[column]));
    });
  });
}

}  // namespace caisson::policy
