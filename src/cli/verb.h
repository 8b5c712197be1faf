// A verb of the command line: its help texts, its syntax, and its function. A new verb is one file that defines a Verb,
// and one row in verbs.cc.
#pragma once

#include <span>
#include <string_view>

#include "cli/options.h"

namespace caisson::cli {

/// The headings of `caisson --help`.
enum class Topic : std::uint8_t { run, session, images, policy, agents, machine, hidden };

struct Verb {
  std::string_view path;         ///< the arguments after `caisson`: "run", "policy check"
  std::string_view summary;      ///< one line, for lists
  std::string_view description;  ///< paragraphs, separated by empty lines
  std::string_view examples;     ///< one per line: command, two or more spaces, description
  Topic topic = Topic::run;
  Syntax syntax;
  int (*perform)(const Arguments& arguments) = nullptr;  ///< returns the exit status; null for a group of verbs
  std::span<const Verb* const> verbs;                    ///< for example "check" and "explain" of "policy"
  /// Of a group: the verb that is meant when no verb is named and an option or `--` follows; or null.
  const Verb* unnamed = nullptr;

  /// The last word of the path, as typed at this level.
  [[nodiscard]] constexpr std::string_view word() const { return path.substr(path.rfind(' ') + 1); }
};

extern const Verb kApprovals, kRun, kSession, kPlan, kPolicy, kMcp, kDoctor, kVersion, kHelpVerb, kCompletions, kMan;
extern const Verb kAudit, kVerify, kPrompts, kStats, kClean, kInside;
extern const Verb kAgent, kImage, kSelf;
extern const Verb kTool, kToolAdd, kToolQuarantine, kToolRelease, kToolRemove, kToolRun, kToolShow;

/// All verbs, in the order help lists them.
std::span<const Verb* const> allVerbs();

/// Returns the verb among `verbs` that is typed as `word`, or null.
const Verb* findVerb(std::span<const Verb* const> verbs, std::string_view word);

/// Runs `caisson WORDS...` and returns the exit status.
int dispatch(std::span<char* const> words);

}  // namespace caisson::cli
