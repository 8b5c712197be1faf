#include "cli/agent/named_secrets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/agent/secret_shapes.h"

namespace caisson::cli {
namespace {

/// Separates words. The dollar sign, `-`, `.`, `/`, `@` and the like belong to them.
constexpr std::string_view kBetweenWords = " \t\r\n\"'`(){}[]<>,;|&\\";

struct SettingWord {
  std::string_view text;
  char before = '\n';      ///< the character before it
  char after = '\n';       ///< the character behind it
  bool alone = true;       ///< the last one of its line
  bool first = true;       ///< of its line
  bool item = false;       ///< of a list, behind `- `
  bool separator = false;  ///< `:` or `=`
};
using SettingWords = std::vector<SettingWord>;

bool isSeparatorAt(std::string_view text, std::size_t at) {
  return text[at] == '=' || (text[at] == ':' && !text.substr(at).starts_with("://"));
}

/// The words of a text; a colon or an equals sign is a separate word, except in `://`. Not words are the dashes of
/// lists, of blocks of YAML (`>-`), and before arguments (`--`).
SettingWords wordsOf(std::string_view text) {
  SettingWords words;
  std::size_t at = 0;
  bool first = true, item = false;
  while (at < text.size()) {
    if (kBetweenWords.find(text[at]) != std::string_view::npos) {
      if (text[at] == '\n') first = true, item = false;
      ++at;
      continue;
    }
    std::size_t end = at;
    const bool separator = isSeparatorAt(text, at);
    if (separator) {
      end = at + 1;
    } else {
      while (end < text.size() && kBetweenWords.find(text[end]) == std::string_view::npos && !isSeparatorAt(text, end))
        ++end;
    }
    const std::string_view word = text.substr(at, end - at);
    if (word.find_first_not_of('-') == std::string_view::npos) {
      item = item || first;
    } else {
      words.push_back({.text = word,
                       .before = at == 0 ? '\n' : text[at - 1],
                       .after = end == text.size() ? '\n' : text[end],
                       .first = first,
                       .item = item,
                       .separator = separator});
      first = item = false;
    }
    at = end;
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) words[i].alone = words[i + 1].first;
  return words;
}

/// The text between two neighbours.
std::string_view between(const SettingWord& left, const SettingWord& right) {
  const char* const start = left.text.data() + left.text.size();
  return {start, static_cast<std::size_t>(right.text.data() - start)};
}

bool hasDigit(std::string_view text) { return std::ranges::any_of(text, isDigit); }

bool hasOnlyDigits(std::string_view text) { return text.find_first_not_of("0123456789.") == std::string_view::npos; }

/// Without the marks of Markdown.
std::string_view withoutEmphasis(std::string_view text) {
  const std::string_view inner = trimmed(text, "*~");
  return inner.empty() ? text : inner;
}

bool isHarmlessValue(std::string_view value) {
  return value.empty() || value == "true" || value == "false" || value == "null" || value == "none" || value == "~";
}

/// `$NAME`, `<token>`, `{env:NAME}`, `***`: a place for a value.
bool isPlaceholder(const SettingWord& value) {
  const std::string_view text = withoutEmphasis(value.text);
  // A shell replaces nothing between single quotes; programs that do have names with underscores.
  if (value.before == '\'' && text.starts_with('$') && hasDigit(text) && text.find('_') == std::string_view::npos)
    return false;
  if (isPlace(text)) return true;
  if (value.before == '<' || (value.before == '{' && value.text == "env")) return true;
  const std::string small = lowered(text);
  return small.starts_with("process.env") || small.starts_with("os.environ");
}

/// API_KEY: the name of a variable.
bool isConstantName(std::string_view text) {
  return text.find_first_of("_-") != std::string_view::npos &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string_view::npos;
}

/// A word that can be a password without a sign that it is one: letters and digits, but no version, algorithm or path.
bool looksLikePassword(const SettingWord& value) {
  const std::string_view text = trimmed(value.text, ".,:;!?*~");
  constexpr std::size_t kLeast = 6;
  if (text.size() < kLeast || !hasDigit(text) || !std::ranges::any_of(text, isLetter)) return false;
  if (isPlaceholder(value) || isConstantName(text) || text.find('/') != std::string_view::npos) return false;
  const std::string small = lowered(text);
  const std::size_t dot = small.rfind('.');
  if (dot != std::string::npos && small.size() - dot <= 6) return false;  // the name of a file, a version
  const std::size_t letters = small.find_first_not_of("0123456789");
  if (letters > 0 && small.size() - letters <= 3) return false;  // a number with a unit
  constexpr std::string_view kBeginnings[] = {"sha",    "oauth",  "base64", "aes",   "pkcs",   "argon", "ed25519",
                                              "rfc",    "pbkdf2", "hmac",   "gpt-",  "claude", "llama", "gemini",
                                              "cl100k", "o200k",  "utf-",   "http/", "scrypt", "p256",  "secp"};
  return std::ranges::none_of(kBeginnings, [&](std::string_view one) { return small.starts_with(one); });
}

/// Whether the word after a secret name in prose can be its value: not an ordinary word in a sentence.
bool isValueInProse(const SettingWord& value, bool after_flag) {
  if (value.item) return looksLikePassword(value);
  const std::string_view text = trimmed(value.text, ".,:!?*~");
  if (isConstantName(text)) return false;
  const auto isForeign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::ranges::any_of(text, isForeign)) return looksLikePassword(value);
  const bool plain = std::ranges::all_of(text, [](char c) { return isLetter(c) || c == '-'; });
  if (!plain) return true;
  constexpr std::string_view kOrdinary[] = {"to",     "for",  "and", "or",  "is", "in",   "with",    "flag",
                                            "option", "if",   "the", "a",   "an", "from", "instead", "as",
                                            "on",     "must", "are", "not", "so", "when"};
  return !isOneOf(lowered(text), kOrdinary) && (after_flag || value.alone);
}

/// A name that is followed by a value also in a sentence. `key` alone is none.
bool isNameInSentence(const SettingWords& words, std::size_t i) {
  const std::string name = lowered(trimmed(words[i].text, "*_~"));
  constexpr std::string_view kBefore[] = {"api", "access", "secret", "private", "account", "license", "signing"};
  if (name == "key") return i > 0 && isOneOf(lowered(trimmed(words[i - 1].text, "*_~")), kBefore);
  if (name.ends_with("_key") || name.ends_with("-key")) return true;
  if (name.size() > 4 && (name.ends_with("pw") || name.ends_with("pass"))) return true;  // bindpw, dbpass
  if (isTokenCount(name) || name.find("tokeniz") != std::string::npos) return false;
  constexpr std::string_view kParts[] = {"password",   "passwd", "passphrase", "passcode", "pwd",  "secret", "token",
                                         "credential", "apikey", "passwort",   "kennwort", "密码", "密碼",   "口令"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

/// `Password for staging: WORD`, `The password (prod) is: WORD`
bool hasValueInSentence(const SettingWords& words, std::size_t i) {
  constexpr std::size_t kNear = 5;
  constexpr std::string_view kLinks[] = {"for", "of", "on", "in", "at", "is", "was"};
  if (i + 2 >= words.size() || words[i].alone) return false;
  if (words[i + 1].before != '(' && !isOneOf(lowered(words[i + 1].text), kLinks)) return false;
  for (std::size_t at = i + 1; at + 1 < std::min(words.size(), i + kNear + 2) && !words[at].alone; ++at)
    if (words[at].separator) return looksLikePassword(words[at + 1]);
  return false;
}

/// "password `WORD`", `token -> WORD`, `| API key | WORD |`, a line `password WORD`, `login NAME password WORD`.
bool hasValueBeside(const SettingWords& words, std::size_t i) {
  const SettingWord& value = words[i + 1];
  if (words[i].alone || value.separator) return false;
  const bool machine = i >= 4 && words[i - 4].text == "machine" && words[i - 2].text == "login";  // .netrc
  if (machine && !isPlaceholder(value)) return true;
  if (!looksLikePassword(value)) return false;
  const std::string_view gap = between(words[i], value);
  if (gap.find_first_not_of(" \t\"'`*|->") != std::string_view::npos)
    return gap == "\", \"" || gap == "', '" || gap == "\",\"";
  const bool row = gap.find('|') != std::string_view::npos;
  const bool begins_row = std::any_of(words.begin() + static_cast<std::ptrdiff_t>(i < 2 ? 0 : i - 2),
                                      words.begin() + static_cast<std::ptrdiff_t>(i + 1),
                                      [](const SettingWord& word) { return word.first; });
  if (row && !begins_row) return false;  // of a longer cell, or of a pipe
  const bool marked = gap.find_first_not_of(" \t") != std::string_view::npos || value.text.starts_with('*');
  constexpr std::string_view kUsers[] = {"login", "user", "username", "account"};
  const bool after_user = i >= 2 && isOneOf(lowered(words[i - 2].text), kUsers);
  return marked || after_user || (words[i].first && value.alone);
}

/// The mark between the cells of a line; 0 if there is none.
char separatorOf(std::string_view line) {
  if (line.starts_with('|')) return '|';
  for (const char mark : {'\t', ';', ','})
    if (line.find(mark) != std::string_view::npos) return mark;
  return 0;
}

/// The cells of a line, also empty ones.
std::vector<std::string_view> cellsOf(std::string_view line, char separator) {
  if (separator == '|') return split(line, separator);
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t end = line.find(separator);
    cells.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

/// Whether a cell is the name of a column of secrets: one of at most three words.
bool namesColumn(std::string_view cell) {
  constexpr std::size_t kLongestName = 64;
  if (cell.size() > kLongestName) return false;
  const SettingWords words = wordsOf(cell);
  return !words.empty() && words.size() <= 3 && isSecretName(words.back().text) &&
         isNameInSentence(words, words.size() - 1);
}

/// `| password |` above `| WORD |`, and `name,password` above `NAME,WORD`.
bool hasColumnOfSecrets(std::string_view text) {
  std::vector<std::size_t> columns;  // of the table at hand that have a secret's name
  char separator = 0;                // of the table at hand
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end), " \t\r");
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool goes_on = separator != 0 && line.find(separator) != std::string_view::npos;
    const std::vector<std::string_view> cells = goes_on ? cellsOf(line, separator) : std::vector<std::string_view>();
    const bool same = goes_on && (separator == '|' ? line.starts_with('|') : cells.size() == width);
    for (const std::size_t column : columns) {
      if (!same || column >= cells.size()) break;  // the columns are in order
      const SettingWords words = wordsOf(cells[column]);
      if (words.size() == 1 && looksLikePassword(words.front())) return true;
    }
    if (same && separator == '|') continue;
    // Each line may be the first one of a table without marks around it.
    if (same && !columns.empty()) continue;
    separator = separatorOf(line);
    columns.clear();
    if (separator == 0) continue;
    const std::vector<std::string_view> names = cellsOf(line, separator);
    width = names.size();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (namesColumn(names[i])) columns.push_back(i);
  }
  return false;
}

/// `<password>WORD</password>`
bool isElement(const SettingWords& words, std::size_t i) {
  if (words[i].before != '<' || words[i].after != '>' || words[i + 1].before == '<') return false;
  for (std::size_t at = i + 2; at < std::min(words.size(), i + 5); ++at)
    if (words[at].before == '<' && words[at].text.starts_with('/') && words[at].text.substr(1) == words[i].text)
      return !isHarmlessValue(words[i + 1].text) && !isPlaceholder(words[i + 1]);
  return false;
}

/// `setenv API_KEY WORD`, `set -x API_KEY WORD`, `export API_KEY WORD`
bool isAssigned(const SettingWords& words, std::size_t i) {
  const SettingWord& value = words[i + 1];
  if (i == 0 || words[i].alone || value.separator || isPlaceholder(value)) return false;
  constexpr std::string_view kSetters[] = {"setenv", "setx", "fastcgi_param", "uwsgi_param", "scgi_param"};
  const std::string setter = lowered(words[i - 1].text);
  const bool flag = i >= 2 && words[i - 2].text == "set" && setter.starts_with('-');
  const bool line = setter == "env" && words[i - 1].first;  // of a Dockerfile
  if (isOneOf(setter, kSetters) || flag || line) return isValueInProse(value, true);
  return (setter == "export" || setter == "set") && looksLikePassword(value);
}

bool isValueOfPair(const SettingWord& value, TextKind kind) {
  if (value.separator || isPlaceholder(value) || isHarmlessValue(value.text)) return false;
  return kind == TextKind::settings || looksLikePassword(value);
}

/// `name: PASSWORD` beside `value: WORD`, name="password" value="WORD", `--name DB_PASSWORD --value WORD`.
bool hasValueInPair(const SettingWords& words, std::size_t i, TextKind kind) {
  constexpr std::string_view kNames[] = {"name", "key", "variable", "param", "id"};
  constexpr std::string_view kValues[] = {"value", "val", "content", "string-value"};
  constexpr std::size_t kNear = 6;
  const auto label = [&](std::size_t at) { return lowered(trimmed(words[at].text, "-")); };
  const std::size_t names = i >= 2 && words[i - 1].separator ? i - 2 : i - 1;
  if (i == 0 || !isOneOf(label(names), kNames) || (names == i - 1 && !words[names].text.starts_with('-'))) return false;
  for (std::size_t at = i < kNear ? 0 : i - kNear; at + 1 < std::min(words.size(), i + kNear); ++at) {
    if (at == i || !isOneOf(label(at), kValues)) continue;
    const bool separated = words[at + 1].separator;
    if (!separated && !words[at].text.starts_with('-')) continue;
    const std::size_t value = at + (separated ? 2 : 1);
    if (value < words.size() && value != i && isValueOfPair(words[value], kind)) return true;
  }
  return false;
}

/// `variable "db_password" { default = "WORD" }` of Terraform, however long its description is.
bool hasVariableWithDefault(const SettingWords& words, TextKind kind) {
  bool secret = false;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i].text == "variable" && words[i].first && words[i + 1].before == '"')
      secret = isSecretName(words[i + 1].text);
    if (secret && words[i].text == "default" && words[i + 1].text == "=" && isValueOfPair(words[i + 2], kind))
      return true;
  }
  return false;
}

/// `IDENTIFIED BY 'WORD'`
bool isIdentifiedBy(const SettingWords& words, std::size_t i) {
  constexpr std::size_t kNear = 3;
  if (lowered(words[i].text) != "by" || isPlaceholder(words[i + 1])) return false;
  const bool quoted = words[i + 1].before == '\'' || words[i + 1].before == '"';
  if (!quoted && !looksLikePassword(words[i + 1])) return false;
  for (std::size_t back = 1; back <= std::min(i, kNear); ++back)
    if (lowered(words[i - back].text) == "identified") return true;
  return false;
}

/// `HOST:PORT:DATABASE:USER:WORD`, a line of .pgpass; not an address, a time or a place in a file.
bool hasPasswordLine(std::string_view text) {
  constexpr std::size_t kFields = 5;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'`"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::vector<std::string_view> fields = cellsOf(word, ':');
    if (fields.size() < kFields) continue;
    const auto isName = [](std::string_view field) { return field == "*" || std::ranges::any_of(field, isLetter); };
    const bool port = fields[1] == "*" || (fields[1].size() > 1 && std::ranges::all_of(fields[1], isDigit));
    const bool hexadecimal = word.find_first_not_of("0123456789abcdefABCDEF:") == std::string_view::npos;
    if (!fields[0].empty() && port && isName(fields[2]) && isName(fields[3]) && !isPlace(fields[4]) && !hexadecimal)
      return true;
  }
  return false;
}

/// `Authorization: SCHEME WORD`, `Credentials: NAME / WORD`
bool hasHeaderWord(const SettingWords& words, std::size_t at) {
  constexpr std::size_t kNear = 8;
  for (std::size_t k = at; k < std::min(words.size(), at + kNear); ++k) {
    if (k > at && words[k].first) break;
    if (!words[k].separator && looksLikePassword(words[k])) return true;
  }
  return false;
}

/// `NAME: WORD`, `--NAME WORD`, "the NAME is WORD", on the next line as well.
bool hasValueBehind(const SettingWords& words, std::size_t i, TextKind kind) {
  const bool flag = words[i].text.starts_with('-');
  std::size_t at = i + 1;
  while (at < words.size() && words[at].separator) ++at;
  const bool sentence = at == i + 1 && at + 1 < words.size() && (words[at].text == "is" || words[at].text == "was");
  if (sentence) ++at;  // "the password is hunter2"
  if (at == words.size() || (at == i + 1 && !flag)) return false;
  const SettingWord& value = words[at];
  const std::string name = lowered(words[i].text);
  if (isHarmlessValue(value.text) || isPlaceholder(value)) return false;
  if (isTokenCount(name) && hasOnlyDigits(value.text)) return false;  // max_tokens = 8000
  if (sentence ? hasDigit(value.text) : kind == TextKind::settings || isValueInProse(value, flag)) return true;
  const bool several = name.ends_with("authorization") || name.find("credential") != std::string::npos;
  if (several && hasHeaderWord(words, at)) return true;
  // Cookie: NAME=VALUE
  return at + 2 < words.size() && words[at + 1].text == "=" && name.ends_with("cookie");
}

/// `process.env.API_TOKEN || "WORD"`, `?? "WORD"`, `os.getenv("API_TOKEN") or "WORD"`
bool hasDefault(const SettingWords& words, std::size_t i, TextKind kind) {
  std::size_t at = i + 1;
  const bool named = words[at].text == "??" || words[at].text == "or";
  if (named) ++at;
  if (at >= words.size()) return false;
  const SettingWord& value = words[at];
  const bool quoted = value.before == '"' || value.before == '\'' || value.before == '`';
  if (!quoted || (!named && between(words[i], value).find("||") == std::string_view::npos)) return false;
  if (looksLikePassword(value)) return true;
  const bool close = value.after == value.before;  // one word
  return kind == TextKind::settings && close && !isHarmlessValue(value.text) && !isPlaceholder(value);
}

/// Signs of other scripts and of XML as those of ASCII, of the same length.
std::string withPlainSigns(std::string_view text) {
  struct Sign {
    std::string_view sign, plain;
  };
  constexpr Sign kSigns[] = {{"：", ":  "}, {"＝", "=  "},      {"—", " - "},
                             {"–", " - "},  {"―", " - "},       {"−", " - "},
                             {"→", "-> "},  {"\xC2\xA0", "  "}, {"<![CDATA[", "         "},
                             {"]]>", "   "}};
  std::string plain(text);
  for (std::size_t at = 0; at < plain.size(); ++at) {
    if (plain[at] != '<' && plain[at] != ']' && static_cast<unsigned char>(plain[at]) < 0x80) continue;
    for (const Sign& one : kSigns)
      if (text.substr(at).starts_with(one.sign)) plain.replace(at, one.sign.size(), one.plain);
  }
  return plain;
}

}  // namespace

bool holdsNamedSecret(std::string_view original, TextKind kind) {
  const std::string text = withPlainSigns(original);
  const SettingWords words = wordsOf(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    if (!last && isIdentifiedBy(words, i)) return true;
    if (words[i].separator || !isSecretName(words[i].text)) continue;
    if (hasValueInPair(words, i, kind)) return true;
    if (last) break;
    if (hasValueBehind(words, i, kind) || isElement(words, i) || isAssigned(words, i)) return true;
    if (isNameInSentence(words, i) &&
        (hasValueInSentence(words, i) || hasValueBeside(words, i) || hasDefault(words, i, kind)))
      return true;
  }
  return hasColumnOfSecrets(text) || hasVariableWithDefault(words, kind) || hasPasswordLine(text);
}

}  // namespace caisson::cli
