#include "cli/perform_verb.h"

#include <vector>

#include "cli/help.h"
#include "cli/output.h"
#include "policy/fields.h"

namespace caisson::cli {

int printHelp(const Verb& verb) { return printBytes(renderHelp(verb, wantsColour(1))); }

Error unknownVerb(std::span<const Verb* const> verbs, std::string_view above, std::string_view word) {
  std::vector<std::string_view> known;
  for (const Verb* verb : verbs)
    if (verb->topic != Topic::hidden) known.push_back(verb->word());
  const std::string_view close = policy::nearest(word, known);
  const std::string command = "caisson" + (above.empty() ? "" : " " + std::string(above));
  const std::string reason =
      close.empty() ? "unknown command" : "unknown command; did you mean `" + command + " " + std::string(close) + "`?";
  return usageError(word, reason, command + " --help");
}

int performVerb(const Verb& verb, std::span<char* const> words) {
  if (!verb.verbs.empty()) {
    if (words.empty())
      return printError(
          usageError(verb.path, "one of its commands is expected", "caisson " + std::string(verb.path) + " --help"));
    const std::string_view word = words[0];
    if (word == "--help" || word == "-h") return printHelp(verb);
    if (verb.unnamed != nullptr && word.starts_with('-')) return performVerb(*verb.unnamed, words);
    const Verb* below = findVerb(verb.verbs, word);
    if (below == nullptr) return printError(unknownVerb(verb.verbs, verb.path, word));
    return performVerb(*below, words.subspan(1));
  }
  auto arguments = parse(verb.syntax, words);
  if (!arguments) {
    Error error = arguments.error();
    if (error.hint.empty()) error.hint = "caisson " + std::string(verb.path) + " --help";
    return printError(error);
  }
  if (arguments->help) return printHelp(verb);
  return verb.perform(*arguments);
}

const Verb* findVerb(std::span<const Verb* const> verbs, std::string_view word) {
  for (const Verb* verb : verbs)
    if (verb->word() == word) return verb;
  return nullptr;
}

}  // namespace caisson::cli
