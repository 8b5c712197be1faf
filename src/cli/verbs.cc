#include <vector>

#include "cli/commands/serve_options.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/self/version.h"
#include "cli/verb.h"
#include "policy/fields.h"

namespace caisson::cli {
namespace {

constexpr const Verb* kVerbs[] = {&kRun,   &kSession, &kImage, &kPlan,    &kPolicy,   &kApprovals,   &kTool,    &kAgent,
                                  &kMcp,   &kServe,   &kToken, &kDoctor,  &kAudit,    &kVerify,      &kPrompts, &kStats,
                                  &kClean, &kInside,  &kSelf,  &kVersion, &kHelpVerb, &kCompletions, &kMan};

int printHelp(const Verb& verb) { return print(renderHelp(verb, wantsColour(1))); }

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
      return complain(
          usageError(verb.path, "one of its commands is expected", "caisson " + std::string(verb.path) + " --help"));
    const std::string_view word = words[0];
    if (word == "--help" || word == "-h") return printHelp(verb);
    if (verb.unnamed != nullptr && word.starts_with('-')) return performVerb(*verb.unnamed, words);
    const Verb* below = findVerb(verb.verbs, word);
    if (below == nullptr) return complain(unknownVerb(verb.verbs, verb.path, word));
    return performVerb(*below, words.subspan(1));
  }
  auto arguments = parse(verb.syntax, words);
  if (!arguments) {
    Error error = arguments.error();
    if (error.hint.empty()) error.hint = "caisson " + std::string(verb.path) + " --help";
    return complain(error);
  }
  if (arguments->help) return printHelp(verb);
  return verb.perform(*arguments);
}

int performHelp(const Arguments& arguments) {
  const Verb* verb = nullptr;
  std::span<const Verb* const> verbs = kVerbs;
  for (const std::string_view word : arguments.operands) {
    const Verb* below = findVerb(verbs, word);
    if (below == nullptr) return complain(unknownVerb(verbs, verb == nullptr ? "" : verb->path, word));
    verb = below;
    verbs = below->verbs;
  }
  return verb == nullptr ? print(renderOverview(kVerbs, wantsColour(1))) : printHelp(*verb);
}

}  // namespace

constinit const Verb kHelpVerb{
    .path = "help",
    .summary = "Explain caisson or one of its commands",
    .description = "The same text as `caisson COMMAND --help`.",
    .topic = Topic::machine,
    .syntax = {.operands = "[COMMAND]..."},
    .perform = performHelp,
};

std::span<const Verb* const> allVerbs() { return kVerbs; }

const Verb* findVerb(std::span<const Verb* const> verbs, std::string_view word) {
  for (const Verb* verb : verbs)
    if (verb->word() == word) return verb;
  return nullptr;
}

int dispatch(std::span<char* const> words) {
  if (words.empty()) {
    writeAll(2, renderShortHelp());
    return kRefused;  // nothing ran: a script whose variable is empty must notice
  }
  const std::string_view word = words[0];
  if (word == "--help" || word == "-h") return print(renderOverview(kVerbs, wantsColour(1)));
  if (word == "--version" || word == "-V") return print(versionLine());
  const Verb* verb = findVerb(kVerbs, word);
  if (verb == nullptr) return complain(unknownVerb(kVerbs, "", word));
  return performVerb(*verb, words.subspan(1));
}

}  // namespace caisson::cli
