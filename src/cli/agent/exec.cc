// `caisson agent exec`: runs one command line of an agent's shell tool in the session of its project.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "api/result_json.h"
#include "cli/agent/agent_options.h"
#include "cli/agent/project_session.h"
#include "cli/agent/verbs.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kProject{
    .name = "project", .value = "DIR", .help = "The project whose session is used (default: that of this directory)."};
constexpr Option kRemember{.name = "remember",
                           .value = "KEY",
                           .help = "Begin where the last command with this key ended: `cd` lasts over commands."};
constexpr Option kOwn[] = {kProject, kRemember};
constexpr OptionGroup kOwnGroups[] = {{"Agent", kOwn}};
constexpr auto kGroups = joinGroups(kProjectPolicyGroups, kOwnGroups);

/// What agents set for the programs their shell starts. The rest of the agent's environment, its key above all, stays
/// outside.
constexpr const char* kPassed[] = {
    "CI",         "CLAUDECODE",       "CODEX_CI", "COLUMNS", "FORCE_COLOR", "GEMINI_CLI", "GH_PAGER",
    "GIT_EDITOR", "GIT_PAGER",        "LANG",     "LC_ALL",  "LC_CTYPE",    "LINES",      "NO_COLOR",
    "PAGER",      "PYTHONUNBUFFERED", "TERM",     "TZ"};

/// $1: the command line, $2: the key or nothing. The directory is kept inside the sandbox: what a command writes there
/// can mislead only later commands of the same session.
constexpr const char* kScript =
    "if [ -n \"$2\" ]; then __at=${TMPDIR:-/tmp}/.caisson-agent; mkdir -p \"$__at\"; __at=$__at/$2; "
    "if [ -r \"$__at\" ]; then cd \"$(cat \"$__at\")\" 2>/dev/null || :; fi; trap 'pwd -P >\"$__at\"' EXIT; fi; "
    "__line=$1; set --; eval \"$__line\"";

bool isKey(std::string_view text) {
  return text.size() <= 64 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
             std::string_view::npos;
}

/// The current directory if it is in the project, else the project.
std::string startDirectory(const std::string& project) {
  std::error_code problem;
  const std::string here = std::filesystem::current_path(problem).string();
  return !problem && (here + "/").starts_with(project + "/") ? here : project;
}

/// A command line as it is, or a program with its arguments.
std::vector<std::string> commandOf(const Arguments& arguments) {
  const auto shell = [&](std::string line) {
    // bash where the sandbox has it, as agents expect.
    return std::vector<std::string>{
        "sh",
        "-c",
        "if command -v bash >/dev/null 2>&1; then exec bash -c \"$1\" bash \"$2\" \"$3\"; fi; "
        "exec sh -c \"$1\" sh \"$2\" \"$3\"",
        "sh",
        kScript,
        std::move(line),
        std::string(arguments.value(kRemember).value_or(""))};
  };
  if (arguments.command.size() == 1) return shell(arguments.command[0]);
  return {arguments.command.begin(), arguments.command.end()};
}

/// INSIDE is where the session shows PROJECT: there, or in the landlock tier at the session's copy.
Result<ExecRequest> requestFor(const Arguments& arguments, const std::string& project, const std::string& inside) {
  ExecRequest request;
  request.command = commandOf(arguments);
  request.working_directory = inside + startDirectory(project).substr(project.size());
  for (const char* name : kPassed)
    if (const char* value = std::getenv(name)) request.environment[name] = value;
  for (const Given& given : arguments.given) {
    if (given.option->name != "env") continue;
    auto variable = readVariable(given.value);
    if (!variable) return fail(variable.error());
    if (*variable) request.environment[(*variable)->name] = (*variable)->value;
  }
  request.out = request.err = StreamMode::relay;
  request.relay_stdin = true;
  request.interactive = ::isatty(STDIN_FILENO) == 1;
  request.ask_for_hosts = false;
  request.forward_signals = true;
  return request;
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return printError(
        usageError("agent exec", "no command given; it comes after `--`", "caisson agent exec -- 'ls -l'"));
  if (!isKey(arguments.value(kRemember).value_or("")))
    return printError(usageError("--remember", "expected up to 64 letters, digits, - and _"));
  const auto project = projectDirectory(std::string(arguments.value(kProject).value_or(".")));
  if (!project) return printError(project.error());
  const auto based = basedPolicyFrom(arguments, {.directory = startDirectory(*project)});
  if (!based) return printError(based.error());
  const Policy& policy = based->policy;
  if (auto checked = checkForSession(arguments, policy.model()); !checked) return printError(checked.error());
  if (auto approvals = obtainApprovals(arguments, policy.model()); !approvals) return printError(approvals.error());
  auto store = openSessionsForCommands();
  if (!store) return printError(store.error());
  auto session = openProjectSession(*store, *project, policy);
  if (!session) return printError(attributeToFlag(session.error(), arguments));
  const auto info = session->info();
  if (!info) return printError(info.error());
  const auto request = requestFor(arguments, *project, info->directory);
  if (!request) return printError(request.error());
  surviveBrokenPipes();
  const auto result = session->exec(*request);
  return reportCommand(result ? *result : refusedResult(result.error()), false);
}

}  // namespace

constinit const Verb kAgentExec{
    .path = "agent exec",
    .summary = "Run a command in the session of this project",
    .description =
        "What an installed hook puts before the commands of an agent's shell tool. The session is created at the first "
        "command, with the policy of these options or of the project, and is the same for every later one. Its files "
        "reach the project with `caisson agent commit`. One argument after `--` is a line for the shell; several are a "
        "program with its arguments. The directory, the exit status and the variables that agents set for their "
        "commands are kept; other variables pass with --env.",
    .examples = "caisson agent exec -- 'make test | tail'",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups, .command = "-- LINE | CMD ARG..."},
    .perform = perform,
};

}  // namespace caisson::cli
