// `caisson agent hook`: called by an agent before its shell tool runs, at its start and at the end of a turn.
#include "cli/agent/hook.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/agent/agent_options.h"
#include "cli/agent/project_session.h"
#include "cli/agent/verbs.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/own_program.h"

namespace caisson::cli {
namespace {

/// Agents run the command as it was if a hook fails with any other status.
constexpr int kBlocks = 2;
constexpr std::size_t kMaxInput = std::size_t{16} << 20U;

constexpr Option kOwn[] = {kAgentAutoAllow};
constexpr OptionGroup kOwnGroups[] = {{"Agent", kOwn}};
constexpr auto kGroups = joinGroups(kProjectPolicyGroups, kOwnGroups);

int block(const Error& error) {
  printError(error);
  return kBlocks;
}

Result<std::string> readInput() {
  std::string text;
  char piece[65536];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::usage, "read", "standard input", errno));
    if (got == 0) return text;
    text.append(piece, static_cast<std::size_t>(got));
    if (text.size() > kMaxInput) return fail(usageError("agent hook", "the call is larger than 16 MiB"));
  }
}

HookOptions optionsFrom(const Arguments& arguments) {
  HookOptions options{.program = ownProgram(),
                      .host = std::string(arguments.operands[0]),
                      .auto_allow = arguments.has(kAgentAutoAllow)};
  for (const Given& given : arguments.given) {
    if (given.option->name == kAgentAutoAllow.name) continue;
    options.flags.push_back("--" + std::string(given.option->name));
    if (!given.option->value.empty()) options.flags.back() += "=" + std::string(given.value);
  }
  return options;
}

/// What the session of this project would commit; 0 if there is no session or it cannot be read.
std::size_t waitingChanges(const std::string& project) {
  auto store = openSessions();
  auto session = store ? store->find(projectSessionName(project)) : fail(store.error());
  if (!session || !checkProjectSession(*session, project)) return 0;
  const auto changes = session->diff();
  return changes ? changes->size() : 0;
}

int perform(const Arguments& arguments) {
  if (arguments.operands.size() != 1) return block(usageError("agent hook", "expected the name of an agent"));
  const auto input = readInput();
  if (!input) return block(input.error());
  const auto call = readHookCall(*input);
  if (!call) return block(call.error());
  const char* named = std::getenv("CLAUDE_PROJECT_DIR");
  const auto project = projectDirectory(named != nullptr && *named == '/' ? named : call->project);
  if (call->event == "SessionStart") return print(startAnswer(call->event) + "\n");
  if (call->event == "Stop" || call->event == "AfterAgent") {
    const std::size_t changes = project ? waitingChanges(*project) : 0;
    return changes == 0 ? 0 : print(endAnswer(changes) + "\n");
  }
  if (call->event != "PreToolUse" && call->event != "BeforeTool") return 0;
  if (!project) return block(project.error());
  const HookOptions options = optionsFrom(arguments);
  if (options.program.empty()) return block(usageError("agent hook", "can't find out where caisson is"));
  const auto answer = wrapShellCall(*input, *project, options);
  if (!answer) return block(answer.error());
  return print(*answer + "\n") == 0 ? 0 : kBlocks;
}

}  // namespace

constinit const Verb kAgentHook{
    .path = "agent hook",
    .summary = "Answer a hook of an agent",
    .description =
        "Reads the call of a hook on standard input. Before a shell tool runs, the answer is the same call with "
        "`caisson agent exec` around its command. If anything fails the status is 2, and the agent does not run the "
        "command.",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups, .operands = "HOST"},
    .perform = perform,
};

}  // namespace caisson::cli
