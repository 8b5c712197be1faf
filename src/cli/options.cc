#include "cli/options.h"

#include <algorithm>
#include <string>

#include "policy/fields.h"

namespace caisson::cli {
namespace {

const Option* findLong(const Syntax& syntax, std::string_view name) {
  for (const OptionGroup& group : syntax.groups)
    for (const Option& option : group.options)
      if (option.name == name) return &option;
  return name == kHelp.name ? &kHelp : nullptr;
}

const Option* findLetter(const Syntax& syntax, char letter) {
  for (const OptionGroup& group : syntax.groups)
    for (const Option& option : group.options)
      if (option.letter == letter) return &option;
  return letter == kHelp.letter ? &kHelp : nullptr;
}

Error unknownOption(const Syntax& syntax, std::string_view word, std::string_view name) {
  std::vector<std::string_view> known{kHelp.name};
  for (const OptionGroup& group : syntax.groups)
    for (const Option& option : group.options) known.push_back(option.name);
  const std::string_view close = policy::nearest(name, known);
  if (close.empty()) return usageError(word, "unknown option");
  return usageError(word, "unknown option; did you mean --" + std::string(close) + "?");
}

Error unexpectedOperand(const Syntax& syntax, std::string_view word) {
  if (syntax.command.empty()) return usageError(word, "unexpected argument; an option was expected");
  return usageError(word, "unexpected argument; the command to run comes after `--`",
                    "put `--` before the command: -- " + std::string(word));
}

bool allowedWord(std::string_view choices, std::string_view value) {
  while (true) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

}  // namespace

std::optional<std::string_view> Arguments::value(const Option& option) const {
  for (const Given& one : given)
    if (one.option->name == option.name) return one.value;
  return std::nullopt;
}

std::string spelling(const Option& option) {
  std::string text;
  if (option.letter != 0) text = std::string("-") + option.letter + ", ";
  text += "--" + std::string(option.name);
  if (!option.value.empty()) text += " " + std::string(option.value);
  return text;
}

Error usageError(std::string_view subject, std::string_view reason, std::string_view hint) {
  return plainError(Stage::usage, "parse", subject, reason, hint);
}

Result<Arguments> parse(const Syntax& syntax, std::span<char* const> words) {
  Arguments arguments;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "--") {
      if (syntax.command.empty() && at + 1 < words.size())
        return fail(usageError(word, "this verb runs no command, so nothing may follow `--`"));
      arguments.command = words.subspan(at + 1);
      return arguments;
    }
    if (word.size() < 2 || word[0] != '-') {
      if (syntax.operands.empty()) return fail(unexpectedOperand(syntax, word));
      arguments.operands.push_back(word);
      continue;
    }

    const bool is_long = word[1] == '-';
    const std::size_t equals = is_long ? word.find('=') : std::string_view::npos;
    const std::string_view name =
        is_long ? word.substr(2, equals == std::string_view::npos ? equals : equals - 2) : word.substr(1);
    const Option* option = nullptr;
    if (is_long) {
      option = findLong(syntax, name);
    } else if (name.size() == 1) {
      option = findLetter(syntax, name[0]);
    }
    if (option == nullptr) return fail(unknownOption(syntax, word.substr(0, equals), name));
    if (option == &kHelp) {
      arguments.help = true;
      return arguments;
    }
    const std::string shown = "--" + std::string(option->name);
    if (!option->repeatable && arguments.has(*option)) return fail(usageError(shown, "given more than once"));

    std::string_view value;
    if (equals != std::string_view::npos) {
      if (option->value.empty()) return fail(usageError(shown, "takes no value"));
      value = word.substr(equals + 1);
    } else if (!option->value.empty()) {
      // A missing value must not consume the next option or the `--` before the command.
      if (at + 1 == words.size() || std::string_view(words[at + 1]).starts_with("--"))
        return fail(usageError(shown, "needs a value: " + std::string(option->value),
                               "write " + shown + "=VALUE if the value begins with dashes"));
      value = words[++at];
    }
    if (option->value.find('|') != std::string_view::npos && !allowedWord(option->value, value) &&
        (option->unlisted.empty() || !allowedWord(option->unlisted, value)))
      return fail(usageError(shown + " " + std::string(value), "expected " + std::string(option->value)));
    arguments.given.push_back({option, value});
  }
  return arguments;
}

}  // namespace caisson::cli
