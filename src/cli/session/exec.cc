// `caisson session exec`: runs a command in a session.
#include <unistd.h>

#include <csignal>

#include "api/result_json.h"
#include "base/json_writer.h"
#include "cli/network_offer.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/result/notices.h"
#include "cli/result/report.h"
#include "cli/session/verbs.h"
#include "policy/rules/network_client.h"
#include "policy/units.h"

namespace caisson::cli {
namespace {

constexpr Option kTimeout{.name = "timeout", .value = "DUR", .help = "End it after this long: 30s, 5m."};
constexpr Option kJson{.name = "json", .help = "Capture the output and print one JSON object instead of it."};
constexpr Option kBackground{.name = "background",
                             .help = "Start it, print its number and return; it lives on in the session."};
constexpr Option kEnv{.name = "env",
                      .value = "K[=V]",
                      .help = "Set a variable; without =V, pass the caller's value.",
                      .repeatable = true};
constexpr Option kDirectory{
    .name = "cwd", .value = "DIR", .help = "Start in this directory of the sandbox. Relative: to the workspace."};
constexpr Option kOptions[] = {kBackground, kTimeout, kEnv, kDirectory, kOutputLimit, kJson, kNoInput};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};
constexpr Option kShellOptions[] = {kEnv, kDirectory};
constexpr OptionGroup kShellGroups[] = {{"Options", kShellOptions}};

/// Applies --env and --cwd to the request.
Result<void> readPlace(const Arguments& arguments, ExecRequest& request) {
  for (const Given& given : arguments.given) {
    if (given.option->name != kEnv.name) continue;
    auto variable = readVariable(given.value);
    if (!variable) return fail(variable.error());
    if (*variable) request.environment[(*variable)->name] = (*variable)->value;
  }
  if (const auto directory = arguments.value(kDirectory)) {
    if (directory->empty()) return fail(usageError("--cwd", "the value is empty", "name a directory of the sandbox"));
    request.working_directory = *directory;
  }
  return {};
}

Result<ExecRequest> readRequest(const Arguments& arguments) {
  ExecRequest request;
  request.command.assign(arguments.command.begin(), arguments.command.end());
  if (const auto text = arguments.value(kTimeout)) {
    const auto seconds = secondsFrom(*text, "--timeout");
    if (!seconds) return fail(seconds.error());
    request.timeout_seconds = *seconds;
    request.typed = true;
  }
  if (const auto text = arguments.value(kOutputLimit)) {
    const auto bytes = policy::parseSize(*text);
    if (!bytes) return fail(usageError("--output-limit", bytes.error()));
    request.output_limit = *bytes;
  }
  if (auto read = readPlace(arguments, request); !read) return fail(read.error());
  return request;
}

int startInBackground(Session& session, const ExecRequest& request, bool json) {
  const auto exec = session.start(request);
  if (!exec && json) return reportCommand(refusedResult(exec.error()), true);
  if (!exec) {
    printError(exec.error());
    return exitStatus(refusedResult(exec.error()));
  }
  if (!json) return print(std::to_string(*exec) + "\n");
  JsonWriter writer;
  writer.beginObject().key("session").string(session.id()).key("exec").number(*exec).end();
  return print(writer.text() + "\n");
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return printError(
        usageError("session exec", "no command given; it comes after `--`", "caisson session exec ID -- ls -l"));
  const bool json = arguments.has(kJson);
  const auto refuse = [&](const Error& error) {
    return json ? reportCommand(refusedResult(error), true) : printError(error);
  };
  auto made = readRequest(arguments);
  if (!made) return refuse(made.error());
  ExecRequest& request = *made;
  if (arguments.has(kBackground)) {
    if (request.output_limit) {
      return refuse(usageError("--output-limit", "a background command has the policy's limit",
                               "set resources.output in the policy of the session"));
    }
    auto session = sessionOf(arguments, "session exec", 1, 1);
    return session ? startInBackground(*session, request, json) : refuse(session.error());
  }
  if (auto counted = countOperands(arguments, "session exec", 1, 1); !counted) return refuse(counted.error());
  auto store = openSessionsForCommands();
  if (!store) return refuse(store.error());
  std::string printed;
  if (!json && policy::networkClient(request.command)) {
    auto session = store->find(arguments.operands[0]);
    if (!session) return refuse(session.error());
    const bool may_ask = ::isatty(STDIN_FILENO) == 1;
    auto offered = offerSessionNetwork(*session, request.command, may_ask);
    if (!offered) return refuse(offered.error());
    printed = *std::move(offered);
  }
  request.out = request.err = json ? StreamMode::capture : StreamMode::relay;
  request.relay_stdin = !arguments.has(kNoInput);
  request.interactive = !json && request.relay_stdin && ::isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  surviveBrokenPipes();
  const auto result = store->exec(arguments.operands[0], request);
  return reportCommand(result ? *result : refusedResult(result.error()), json, printed);
}

/// bash where the sandbox has it, for its line editing; the prompt says where the user types.
constexpr const char* kShellScript =
    "if [ -n \"$(command -v bash)\" ]; then exec bash --norc --noprofile -i; else exec sh -i; fi";

int performShell(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session shell", 1, 1);
  if (!session) return printError(session.error());
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return printError(usageError("session shell", "needs a terminal", "without one: caisson session exec ID -- sh"));
  }
  const auto info = session->info();
  if (!info) return printError(info.error());
  ExecRequest request;
  request.command = {"sh", "-c", kShellScript};
  request.environment["PS1"] = "(" + (info->name.empty() ? info->id.substr(0, 11) : info->name) + ") \\w \\$ ";
  if (auto read = readPlace(arguments, request); !read) return printError(read.error());
  request.out = request.err = StreamMode::relay;
  request.relay_stdin = request.interactive = request.forward_signals = true;
  surviveBrokenPipes();
  const auto result = session->exec(request);
  return reportCommand(result ? *result : refusedResult(result.error()), false);
}

}  // namespace

void surviveBrokenPipes() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

int reportCommand(const RunResult& result, bool json, std::string_view printed) {
  int status = exitStatus(result);
  if (json) {
    if (const int failed = print(renderResult(result) + "\n"); failed != 0) status = failed;
  }
  if (result.error) printError(*result.error);
  if (!json) {
    status = statusWithOutput(status, result);
    for (const std::string& line : noticesFor(result, false, true)) {
      if (line != printed) printNotice(line);
    }
  }
  return status;
}

constinit const Verb kSessionShell{
    .path = "session shell",
    .summary = "Open a shell in a session",
    .description =
        "Needs a terminal. The prompt shows the session's name; `exit` leaves the shell, and the session stays.",
    .examples = "caisson session shell fix-login",
    .topic = Topic::session,
    .syntax = {.groups = kShellGroups, .operands = "ID"},
    .perform = performShell,
};

constinit const Verb kSessionExec{
    .path = "session exec",
    .summary = "Run a command in a session",
    .description =
        "Standard input, output and error are passed through; the exit status is the command's, as with `caisson run`. "
        "Processes that the command leaves behind live on in the session. In a session with --net proxy, a user at a "
        "terminal is asked about hosts that the policy does not list; without one, with --json and in the background "
        "they are refused.",
    .examples =
        "caisson session exec fix-login -- make test\n"
        "caisson session exec fix-login --timeout 30s --json -- npm test",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID", .command = "-- CMD [ARG]..."},
    .perform = perform,
};

}  // namespace caisson::cli
