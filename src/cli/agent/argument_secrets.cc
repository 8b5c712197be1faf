#include "cli/agent/argument_secrets.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "cli/agent/secret_shapes.h"
#include "cli/agent/secret_text.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kHeaderFlags[] = {"-H", "--header", "--headers"};

/// Headers that choose or describe content.
constexpr std::string_view kPlainHeaders[] = {
    "accept",        "content-type",  "content-length",   "user-agent",      "host",          "origin",   "referer",
    "connection",    "cache-control", "pragma",           "range",           "if-none-match", "if-match", "prefer",
    "depth",         "expect",        "x-requested-with", "x-forwarded-for", "upgrade",       "dnt",      "te",
    "anthropic-beta"};

bool isHeaderName(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return isLetter(c) || isDigit(c) || c == '-' || c == '_'; });
}

/// API_KEY: a place for a value in manuals.
bool isConstant(std::string_view text) {
  return text.find('_') != std::string_view::npos &&
         text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
}

std::string_view firstWord(std::string_view text) { return text.substr(0, text.find_first_of(" \t")); }

/// `X-Team: WORD`, `x-api-key WORD`, `Authorization: Bearer WORD`
bool isHeaderWithValue(std::string_view header) {
  constexpr std::string_view kAround = " \t\"':=";
  constexpr std::string_view kSchemes[] = {"bearer", "basic", "digest", "token", "apikey"};
  header = trimmed(header, kAround);
  const std::size_t end = std::min(header.find_first_of(": \t="), header.size());
  const std::string name = lowered(header.substr(0, end));
  if (!isHeaderName(name)) return false;
  const bool colon = header.substr(end).starts_with(':');
  if (header.substr(end).starts_with("://")) return false;
  header = trimmed(header.substr(end), kAround);
  std::string_view value = firstWord(header);
  if (isOneOf(lowered(value), kSchemes)) value = firstWord(trimmed(header.substr(value.size()), kAround));
  value = trimmed(value, "\"'");
  if (isPlace(value) || isConstant(value) || value.starts_with('-')) return false;
  if (!colon) return isSecretName(name);
  return !std::ranges::all_of(value, isDigit) && !isOneOf(name, kPlainHeaders) && !name.starts_with("accept-") &&
         !name.starts_with("content-") && !name.ends_with("version");
}

constexpr std::string_view kPlainVariables[] = {"PATH",       "HOME",
                                                "SHELL",      "USER",
                                                "LOGNAME",    "PWD",
                                                "LANG",       "LANGUAGE",
                                                "TERM",       "TZ",
                                                "IFS",        "DEBUG",
                                                "VERBOSE",    "CI",
                                                "PORT",       "HOST",
                                                "HOSTNAME",   "EDITOR",
                                                "VISUAL",     "PAGER",
                                                "BROWSER",    "TMPDIR",
                                                "TEMP",       "TMP",
                                                "DISPLAY",    "COLUMNS",
                                                "LINES",      "CC",
                                                "CXX",        "CFLAGS",
                                                "CXXFLAGS",   "LDFLAGS",
                                                "MAKEFLAGS",  "GOOS",
                                                "GOARCH",     "GOFLAGS",
                                                "GOPROXY",    "ENV",
                                                "MODE",       "STAGE",
                                                "PUID",       "PGID",
                                                "UID",        "GID",
                                                "COLORTERM",  "DEBIAN_FRONTEND",
                                                "BASH_ENV",   "RUSTFLAGS",
                                                "JAVA_OPTS",  "MAVEN_OPTS",
                                                "GRADLE_OPTS"};
constexpr std::string_view kPlainBeginnings[] = {
    "LC_",    "XDG_",    "NODE_",    "PYTHON",      "GIT_",       "CARGO_", "RUST_", "GO111",
    "CGO_",   "NO_",     "DISABLE_", "ENABLE_",     "SKIP_",      "USE_",   "MAX_",  "MIN_",
    "FORCE_", "DOCKER_", "COMPOSE_", "PLAYWRIGHT_", "PUPPETEER_", "DOTNET_"};
constexpr std::string_view kPlainEndings[] = {
    "_ENV",     "_HOME",    "_DIR",     "_PATH",   "_FILE",  "_PORT",   "_HOST",   "_MODE",    "_DEBUG",    "_LOG",
    "_LEVEL",   "_TIMEOUT", "_VERSION", "_REGION", "_COLOR", "_LOCALE", "_FORMAT", "_ENABLED", "_DISABLED", "_OPTS",
    "_OPTIONS", "_FLAGS",   "_SIZE",    "_COUNT",  "_LIMIT", "_PAGER",  "_EDITOR", "_MODEL"};

bool isPlainVariable(std::string_view name) {
  std::string large(name);
  std::ranges::transform(large, large.begin(),
                         [](char c) { return isLowerCase(c) ? static_cast<char>(c - 'a' + 'A') : c; });
  return isOneOf(large, kPlainVariables) ||
         std::ranges::any_of(kPlainBeginnings, [&](std::string_view one) { return large.starts_with(one); }) ||
         std::ranges::any_of(kPlainEndings, [&](std::string_view one) { return large.ends_with(one); });
}

bool isPlainVariableValue(std::string_view value) {
  constexpr std::string_view kSwitches[] = {"true", "false", "yes",  "no",     "on",   "off",
                                            "none", "null",  "auto", "always", "never"};
  constexpr std::size_t kLongestNumber = 4;
  if (isPlace(value) || value.front() == '*' || isOneOf(lowered(value), kSwitches)) return true;
  if (value.size() <= kLongestNumber && std::ranges::all_of(value, isDigit)) return true;
  return value.front() == '/' || value.front() == '~' || value.starts_with("./") || value.starts_with("../");
}

bool isAssignment(std::string_view word) {
  const std::size_t sign = word.find('=');
  const std::string_view name = word.substr(0, sign);
  return sign != std::string_view::npos && !name.empty() && !isDigit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return isLetter(c) || isDigit(c) || c == '_'; });
}

}  // namespace

bool isHeaderArgument(std::string_view flag, std::string_view rest) {
  if (isOneOf(flag, kHeaderFlags)) return isHeaderWithValue(rest);
  for (const std::string_view start : {"--header=", "--headers=", "-H"}) {
    if (!flag.starts_with(start) || (start == "-H" && flag.find(':') == std::string_view::npos)) continue;
    return isHeaderWithValue(std::string(flag.substr(start.size())).append(" ").append(rest));
  }
  return false;
}

bool isVariableWithSecret(std::string_view assignment) {
  if (!isAssignment(assignment)) return false;
  const std::size_t sign = assignment.find('=');
  const std::string_view value = trimmed(assignment.substr(sign + 1), "\"'");
  return !isPlainVariable(assignment.substr(0, sign)) && !isPlainVariableValue(value);
}

namespace {

/// `NAME=WORD` as a program's variables are written, in capitals: also as an argument of a program that is not known.
bool isConstantWithSecret(std::string_view word) {
  if (word.starts_with("$env:")) word.remove_prefix(5);  // of PowerShell
  const std::string_view name = word.substr(0, word.find('='));
  const auto in_constant = [](char c) { return isUpperCase(c) || isDigit(c) || c == '_'; };
  return name.size() > 1 && std::ranges::all_of(name, in_constant) && isVariableWithSecret(word);
}

/// `-e`, `--env`, `-ie`, `-E`
bool isVariableFlag(std::string_view flag) {
  constexpr std::string_view kFlags[] = {"--env", "--setenv", "--set-env", "--environment"};
  constexpr std::size_t kMaxLetters = 4;
  if (isOneOf(flag, kFlags)) return true;
  if (flag.size() < 2 || flag.size() > kMaxLetters + 1 || flag.front() != '-') return false;
  return std::ranges::all_of(flag.substr(1), isLetter) && (flag.back() == 'e' || flag.back() == 'E');
}

/// `--env=NAME=WORD`, `-e=NAME=WORD`, `-eNAME=WORD`, and `--build-arg=NAME=WORD` with a name in capitals.
bool isFlagWithVariable(std::string_view flag) {
  if (!flag.starts_with('-')) return false;
  const std::size_t sign = flag.find('=');
  if (sign == std::string_view::npos) return false;
  const std::string_view value = flag.substr(sign + 1);
  if (isVariableFlag(flag.substr(0, sign))) return isVariableWithSecret(value);
  return isConstantWithSecret(value) || (flag.starts_with("-e") && isVariableWithSecret(flag.substr(2)));
}

/// What a command of a shell may begin with, before its variables.
constexpr std::string_view kBeforeVariables[] = {
    "export", "exec", "nohup", "time",    "declare", "Bash",    "Shell",    "ShellTool",
    "if",     "then", "else",  "elif",    "do",      "{",       "!",        "while",
    "until",  "eval", "local", "command", "typeset", "builtin", "readonly", "run_shell_command"};
/// Programs that take variables before the command that they start.
constexpr std::string_view kStarters[] = {"env",    "sudo",    "doas",    "cross-env", "cross-env-shell",
                                          "export", "declare", "typeset", "readonly"};
constexpr std::string_view kShells[] = {"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "cmd", "cmd.exe"};
/// Programs whose `-e` takes one word, so the next one is an argument.
constexpr std::string_view kOneWordPrograms[] = {"docker",
                                                 "podman",
                                                 "nerdctl",
                                                 "docker-compose",
                                                 "podman-compose",
                                                 "lxc",
                                                 "finch",
                                                 "container",
                                                 "grep",
                                                 "egrep",
                                                 "rg",
                                                 "ag",
                                                 "ack",
                                                 "sed",
                                                 "awk",
                                                 "perl",
                                                 "ruby",
                                                 "node",
                                                 "git",
                                                 "find",
                                                 "bun"};

/// Follows the words of commands up to one that gives a variable.
class VariableFinder {
 public:
  bool finds(const CommandWord& word) {
    const std::string_view text = word.text;
    const std::string_view name = text.substr(text.rfind('/') + 1);
    if (word.first) last_ = before_ = {};
    leads_ = leads_ || word.first || beginsInShell(last_);
    if (isVariable(text)) return true;
    one_word_ = one_word_ || isOneOf(name, kOneWordPrograms);
    shell_ = shell_ || isOneOf(name, kShells);
    leads_ = isOneOf(name, kStarters) || (leads_ && keepsLead(word, name));
    before_ = last_;
    last_ = text;
    return false;
  }

 private:
  [[nodiscard]] bool isVariable(std::string_view text) const {
    if (isConstantWithSecret(text) || isFlagWithVariable(text)) return true;
    if ((leads_ || isVariableFlag(last_)) && isVariableWithSecret(text)) return true;
    // -e NAME WORD
    const bool pair = isVariableFlag(before_) && !one_word_ && !text.starts_with('-');
    return pair && isConstantWithSecret(std::string(last_) + "=" + std::string(text));
  }

  [[nodiscard]] bool keepsLead(const CommandWord& word, std::string_view name) const {
    const std::string_view text = word.text;
    if (isAssignment(text) || isOneOf(name, kBeforeVariables)) return true;
    const bool flag = text.starts_with('-') && !word.first;
    return flag || (last_.starts_with('-') && !beginsInShell(last_));  // the value of a flag: env -u NAME
  }

  /// `-c`, `-lc`, `/c` of a shell: a command follows.
  [[nodiscard]] bool beginsInShell(std::string_view flag) const {
    if (!shell_ || flag.size() < 2) return false;
    const bool letters = std::ranges::all_of(flag.substr(1), isLetter);
    return letters && ((flag.front() == '-' && flag.back() == 'c') || flag == "/c" || flag == "/C" || flag == "/k");
  }

  bool leads_ = false;     ///< only assignments, and programs that take them, stand before this word in its command
  bool shell_ = false;     ///< a shell was started
  bool one_word_ = false;  ///< a program of kOneWordPrograms was started
  std::string_view last_, before_;
};

}  // namespace

bool givesVariable(std::span<const CommandWord> words) {
  VariableFinder finder;
  return std::ranges::any_of(words, [&](const CommandWord& word) { return finder.finds(word); });
}

}  // namespace caisson::cli
