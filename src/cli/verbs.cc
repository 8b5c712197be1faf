#include "cli/commands/serve_options.h"
#include "cli/help.h"
#include "cli/output.h"
#include "cli/perform_verb.h"
#include "cli/self/version.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr const Verb* kVerbs[] = {&kRun,   &kSession, &kImage, &kPlan,    &kPolicy,   &kApprovals,   &kTool,    &kAgent,
                                  &kMcp,   &kServe,   &kToken, &kDoctor,  &kAudit,    &kVerify,      &kPrompts, &kStats,
                                  &kClean, &kInside,  &kSelf,  &kVersion, &kHelpVerb, &kCompletions, &kMan};

int performHelp(const Arguments& arguments) {
  const Verb* verb = nullptr;
  std::span<const Verb* const> verbs = kVerbs;
  for (const std::string_view word : arguments.operands) {
    const Verb* below = findVerb(verbs, word);
    if (below == nullptr) return printError(unknownVerb(verbs, verb == nullptr ? "" : verb->path, word));
    verb = below;
    verbs = below->verbs;
  }
  return verb == nullptr ? printBytes(renderOverview(kVerbs, wantsColour(1))) : printHelp(*verb);
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

int dispatch(std::span<char* const> words) {
  if (words.empty()) {
    writeContent(2, renderShortHelp());
    return kRefused;  // nothing ran: a script whose variable is empty must notice
  }
  const std::string_view word = words[0];
  if (word == "--help" || word == "-h") return printBytes(renderOverview(kVerbs, wantsColour(1)));
  if (word == "--version" || word == "-V") return print(versionLine());
  const Verb* verb = findVerb(kVerbs, word);
  if (verb == nullptr) return printError(unknownVerb(kVerbs, "", word));
  return performVerb(*verb, words.subspan(1));
}

}  // namespace caisson::cli
