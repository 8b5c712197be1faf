#include "cli/agent/secret_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/agent/argument_secrets.h"
#include "cli/agent/command_secrets.h"
#include "cli/agent/secret_shapes.h"
#include "cli/agent/secret_text.h"

namespace caisson::cli {
namespace {

using policy::Node;

bool isEmpty(const Node& node) {
  return node.type == Node::Type::null || (isScalar(node) ? node.type == Node::Type::text && node.text.empty()
                                                          : node.items.empty() && node.members.empty());
}

/// `$NAME`, `${NAME}`, `${{ secrets.NAME }}`: names what the copy does not have.
bool isVariable(std::string_view text) {
  if (!text.starts_with('$')) return false;
  const std::string_view name = trimmed(text.substr(1), "{} ");
  const auto in_name = [](char c) { return isLetter(c) || isDigit(c) || c == '_' || c == '.'; };
  const auto in_constant = [](char c) { return isUpperCase(c) || isDigit(c) || c == '_'; };
  if (text.starts_with("${")) return text.ends_with('}') && std::ranges::all_of(name, in_name);
  return name.find('_') != std::string_view::npos && std::ranges::all_of(name, in_constant);
}

/// Without capitals, `_` and `-`.
std::string plainName(std::string_view name) {
  std::string small = lowered(name);
  std::erase_if(small, [](char c) { return c == '_' || c == '-'; });
  return small;
}

/// Also the body of requests, which may hold what others have in headers: CLAUDE_CODE_EXTRA_BODY.
bool namesHeaders(std::string_view plain_name) {
  if (plain_name.ends_with("showheaders")) return false;
  return plain_name.find("headers") != std::string_view::npos || plain_name.ends_with("extrabody");
}

/// What a program gets as an argument: numbers have a text too.
std::string textOf(const Node& value) {
  switch (value.type) {
    case Node::Type::text: return value.text;
    case Node::Type::boolean: return value.boolean ? "true" : "false";
    case Node::Type::integer: return std::to_string(value.integer);
    case Node::Type::floating: return std::to_string(value.floating);
    default: return {};
  }
}

void collectTexts(std::vector<std::string>& texts, const Node& value) {
  if (isScalar(value) && value.type != Node::Type::null) texts.push_back(textOf(value));
  for (const Node& item : value.items) collectTexts(texts, item);
}

constexpr std::size_t kLongestHeader = 4096;

/// A bare name after which a secret follows; flags are known to holdsSecret().
bool announcesSecret(std::string_view text) {
  constexpr std::string_view kBare[] = {"apikey", "api_key", "api-key",      "token", "password",
                                        "secret", "bearer",  "access_token", "auth",  "authorization"};
  return isOneOf(lowered(trimmed(text, ":= ")), kBare);
}

/// `arguments`: without the program, so a first `NAME=WORD` is not a variable.
bool isSecretLine(const std::vector<std::string>& texts, bool after_program, bool arguments) {
  std::string line, rest;
  for (std::size_t i = texts.size(); i-- > 0;) {
    if ((i > 0 || !after_program) && i + 1 < texts.size() && announcesSecret(texts[i])) return true;
    if (isHeaderArgument(texts[i], rest)) return true;
    rest = texts[i] + " " + rest.substr(0, kLongestHeader);
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    line.append(i == 0 ? "" : " ").append(texts[i]);
    // "NAME=WORD run", as a shell gets it behind -c.
    const bool command = texts[i].find_first_of(" \t\n") != std::string::npos;
    if (command && (hasCommandSecret(texts[i]) || givesVariable(commandWords(texts[i])))) return true;
  }
  return holdsSecret(line, TextKind::settings) || givesVariable(commandWords((arguments ? "x " : "") + line));
}

}  // namespace

bool isScalar(const Node& node) { return node.type != Node::Type::table && node.type != Node::Type::list; }

bool isSecretValue(std::string_view name, const Node& node) {
  if (!isSecretName(name)) return false;
  constexpr std::string_view kRules[] = {"allow", "deny", "ask"};
  switch (node.type) {
    case Node::Type::null:
    case Node::Type::boolean: return false;
    case Node::Type::integer:
    case Node::Type::floating: return !isTokenCount(name);
    case Node::Type::text:
      return !node.text.empty() && !isOneOf(node.text, kRules) && !isVariable(node.text) &&
             !(isTokenCount(name) && std::ranges::all_of(node.text, isDigit));
    case Node::Type::list: return !node.items.empty();
    case Node::Type::table:
      return std::ranges::any_of(node.members, [&](const auto& member) { return isSecretValue(name, member.second); });
  }
  return true;
}

bool isEnvironmentOrHeaders(std::string_view name, const Node& node) {
  if (node.type == Node::Type::boolean || isEmpty(node) || !namesEnvironmentOrHeaders(name)) return false;
  if (isScalar(node)) return namesHeaders(plainName(name)) && node.type == Node::Type::text;
  return node.type == Node::Type::list || std::ranges::any_of(node.members, [](const auto& member) {
           return !(member.second.type == Node::Type::text ? isVariable(member.second.text) : isScalar(member.second));
         });
}

bool namesEnvironmentOrHeaders(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "env",          "envs",   "environment", "environments", "envvars", "header", "environmentvariables",
      "envvariables", "setenv", "cookies",     "httpheader"};
  const std::string small = plainName(name);
  return namesHeaders(small) || isOneOf(small, kNames);
}

bool namesSecretInside(const Node& table) {
  const auto isNamed = [&](const auto& member, const auto& names) { return isOneOf(lowered(member.first), names); };
  constexpr std::string_view kValues[] = {"value", "val", "default", "values"};
  const bool has_value = std::ranges::any_of(table.members, [&](const auto& member) {
    return isNamed(member, kValues) && member.second.type != Node::Type::boolean && !isEmpty(member.second);
  });
  constexpr std::string_view kNames[] = {"name", "key", "header", "variable"};
  return std::ranges::any_of(table.members, [&](const auto& member) {
    const std::string_view text = member.second.text;
    return isSecretName(text) && text.find(' ') == std::string_view::npos &&
           (isNamed(member, kNames) || (has_value && !isNamed(member, kValues)));
  });
}

bool isCommandLine(std::string_view name, const Node& list) {
  constexpr std::string_view kNames[] = {"args", "argv", "arguments", "cmd", "command"};
  if (std::ranges::any_of(list.items, [](const Node& item) { return item.type == Node::Type::table; })) return false;
  std::vector<std::string> texts;
  collectTexts(texts, list);
  return isOneOf(lowered(name), kNames) ||
         std::ranges::any_of(texts, [](std::string_view text) { return text.starts_with('-'); });
}

bool hasSecretInLine(std::string_view name, const Node& list) {
  std::vector<std::string> texts;
  collectTexts(texts, list);
  return isSecretLine(texts, false, lowered(name).starts_with("arg"));
}

bool isListOfWords(const Node& list) {
  return std::ranges::all_of(list.items, [](const Node& item) {
    return item.type == Node::Type::list ? isListOfWords(item)
                                         : isScalar(item) && item.text.find(' ') == std::string::npos;
  });
}

bool hasSecretInCommand(const Node& table) {
  std::vector<std::string> texts;
  for (const char* key : {"command", "cmd", "program"})
    if (const Node* value = table.find(key)) collectTexts(texts, *value);
  const bool arguments = texts.empty();
  for (const char* key : {"args", "argv", "arguments"})
    if (const Node* value = table.find(key)) collectTexts(texts, *value);
  return isSecretLine(texts, true, arguments);
}

}  // namespace caisson::cli
