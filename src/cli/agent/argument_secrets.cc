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

bool givesVariable(std::span<const CommandWord> words) {
  constexpr std::string_view kFlags[] = {"-e", "--env"};
  constexpr std::string_view kPrograms[] = {"env", "export", "sudo", "exec", "nohup", "time", "declare"};
  constexpr std::string_view kRules[] = {"Bash", "Shell", "ShellTool", "run_shell_command"};
  bool leads = false;  // only assignments, and programs that take them, stand before this word in its command
  std::string_view last;
  for (const CommandWord& word : words) {
    const std::string_view text = word.text;
    const std::string_view name = text.substr(text.rfind('/') + 1);
    leads = leads || word.first;
    if (!word.first && isOneOf(last, kFlags) && isVariableWithSecret(text)) return true;
    if (text.starts_with("--env=") && isVariableWithSecret(text.substr(6))) return true;
    if (text.starts_with("-e") && !text.starts_with("-e=") && isVariableWithSecret(text.substr(2))) return true;
    if (leads && isVariableWithSecret(text)) return true;
    const bool flag_of_env = text.starts_with('-') && !word.first;
    leads = leads && (isAssignment(text) || isOneOf(name, kPrograms) || isOneOf(name, kRules) || flag_of_env);
    last = text;
  }
  return false;
}

}  // namespace caisson::cli
