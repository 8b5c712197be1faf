// `caisson agent diff|commit`: the review of what an agent's shell changed, without the name of its session.
#include "cli/agent/project_session.h"
#include "cli/agent/verbs.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kPatch{
    .name = "patch", .letter = 'p', .help = "Print the changes inside the files, as `git diff` does."};
constexpr Option kStat{.name = "stat", .help = "Print how many lines changed in each file."};
constexpr Option kDiffOptions[] = {kPatch, kStat};
constexpr OptionGroup kDiffGroups[] = {{"Output", kDiffOptions}};

constexpr Option kDryRun{.name = "dry-run", .letter = 'n', .help = "Change nothing, only say what would be done."};
constexpr Option kExpect{.name = "expect",
                         .value = "DIGEST",
                         .help = "Commit only if the changes are those of this digest, which --dry-run prints."};
constexpr Option kStop{.name = "stop", .help = "End the session's processes first."};
constexpr Option kCommitOptions[] = {kDryRun, kExpect, kStop};
constexpr OptionGroup kCommitGroups[] = {{"Options", kCommitOptions}};

/// Performs the verb of `session` on this project's session; the options have the same names there.
int performOnProject(const Verb& verb, const Arguments& arguments) {
  const auto project = projectDirectory(".");
  if (!project) return printError(project.error());
  const std::string name = projectSessionName(*project);
  auto store = openSessions();
  if (!store) return printError(store.error());
  if (auto session = store->find(name)) {  // otherwise the verb names what is missing
    if (auto checked = checkProjectSession(*session, *project); !checked) return printError(checked.error());
  }
  Arguments with_session = arguments;
  with_session.operands.insert(with_session.operands.begin(), name);
  return verb.perform(with_session);
}

int diff(const Arguments& arguments) { return performOnProject(kSessionDiff, arguments); }
int commit(const Arguments& arguments) { return performOnProject(kSessionCommit, arguments); }

}  // namespace

constinit const Verb kAgentDiff{
    .path = "agent diff",
    .summary = "Show what an agent's shell changed in this project",
    .description = "As `caisson session diff`, for the session of the project that this directory belongs to.",
    .examples = "caisson agent diff -p",
    .topic = Topic::agents,
    .syntax = {.groups = kDiffGroups},
    .perform = diff,
};

constinit const Verb kAgentCommit{
    .path = "agent commit",
    .summary = "Bring what an agent's shell changed to this project",
    .description =
        "As `caisson session commit`, for the session of the project that this directory belongs to. `caisson session "
        "list` shows its name, for everything else that can be done with a session.",
    .examples = "caisson agent commit --dry-run\ncaisson agent commit src",
    .topic = Topic::agents,
    .syntax = {.groups = kCommitGroups, .operands = "[PATH]..."},
    .perform = commit,
};

}  // namespace caisson::cli
