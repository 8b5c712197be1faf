// `caisson agent`: agents in a sandbox, whole or only their shell. Here: the group, and the start of `install`, which
// caisson-mcp carries out since it edits JSON files.
#include "cli/agent/agent_options.h"
#include "cli/agent/verbs.h"
#include "cli/companion.h"
#include "cli/output.h"

namespace caisson::cli {
namespace {

constexpr Option kInstallOptions[] = {kAgentYes, kAgentAutoAllow};
constexpr OptionGroup kInstallOwn[] = {{"Install", kInstallOptions}};
constexpr auto kInstallGroups = joinGroups(kProjectPolicyGroups, kInstallOwn);
constexpr Option kUninstallOptions[] = {kAgentYes};
constexpr OptionGroup kUninstallGroups[] = {{"Options", kUninstallOptions}};

int install(const Arguments& arguments) {
  if (arguments.operands.size() != 1)
    return printError(usageError("agent install", "expected one agent", "caisson agent install claude-code"));
  return becomeCompanion("caisson-mcp", kAgentInstall, arguments);
}

int uninstall(const Arguments& arguments) {
  if (arguments.operands.size() != 1)
    return printError(usageError("agent uninstall", "expected one agent", "caisson agent uninstall claude-code"));
  return becomeCompanion("caisson-mcp", kAgentUninstall, arguments);
}

}  // namespace

constinit const Verb kAgentInstall{
    .path = "agent install",
    .summary = "Let an agent's own shell tool run in a session",
    .description =
        "Adds a hook to the agent's configuration, after showing it: claude-code and gemini (this project), "
        "claude-code-user, codex. Each command of its shell tool then runs with `caisson agent exec`, in one session "
        "per project. The options describe the sandbox of sessions that are created from then on. Installing again "
        "replaces the hook; other settings of the file are kept.",
    .examples =
        "caisson agent install claude-code\n"
        "caisson agent install codex --net proxy --allow-host preset:npm",
    .topic = Topic::agents,
    .syntax = {.groups = kInstallGroups, .operands = "HOST"},
    .perform = install,
};

constinit const Verb kAgentUninstall{
    .path = "agent uninstall",
    .summary = "Remove the hook from an agent's configuration",
    .description = "Other settings of the file are kept, and so are sessions with their changes.",
    .examples = "caisson agent uninstall claude-code",
    .topic = Topic::agents,
    .syntax = {.groups = kUninstallGroups, .operands = "HOST"},
    .perform = uninstall,
};

namespace {
constexpr const Verb* kBelow[] = {&kAgentRun,  &kAgentInstall, &kAgentUninstall, &kAgentExec,
                                  &kAgentDiff, &kAgentCommit,  &kAgentHook};
}

constinit const Verb kAgent{
    .path = "agent",
    .summary = "Agents in a sandbox, whole or only their shell",
    .description = "`caisson agent -- CMD ARG...` is `caisson agent run -- CMD ARG...`.",
    .topic = Topic::agents,
    .verbs = kBelow,
    .unnamed = &kAgentRun,
};

}  // namespace caisson::cli
