// `caisson session exec`: runs a command in a session.
#include <unistd.h>

#include <csignal>

#include "cli/json_writer.h"
#include "cli/notices.h"
#include "cli/output.h"
#include "cli/result_json.h"
#include "cli/run_report.h"
#include "cli/session_verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kTimeout{.name = "timeout", .value = "DUR", .help = "End it after this long: 30s, 5m."};
constexpr Option kJson{.name = "json", .help = "Capture the output and print one JSON object instead of it."};
constexpr Option kBackground{.name = "background",
                             .help = "Start it, print its number and return; it lives on in the session."};
constexpr Option kOptions[] = {kBackground, kTimeout, kJson, kNoInput};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

void surviveBrokenPipes() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

int report(const RunResult& result, bool json) {
  int status = exitStatus(result);
  if (json) {
    if (const int failed = print(renderResult(result) + "\n"); failed != 0) status = failed;
  }
  if (result.error) complain(*result.error);
  if (!json) {
    status = statusWithOutput(status, result);
    for (const std::string& line : noticesFor(result, false)) tell(line);
  }
  return status;
}

int startInBackground(Session& session, const ExecRequest& request, bool json) {
  const auto exec = session.start(request);
  if (!exec && json) return report(refusedResult(exec.error()), true);
  if (!exec) {
    complain(exec.error());
    return exitStatus(refusedResult(exec.error()));
  }
  if (!json) return print(std::to_string(*exec) + "\n");
  JsonWriter writer;
  writer.beginObject().key("session").string(session.id()).key("exec").number(*exec).end();
  return print(writer.text() + "\n");
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return complain(
        usageError("session exec", "no command given; it comes after `--`", "caisson session exec ID -- ls -l"));
  const bool json = arguments.has(kJson);
  const auto refuse = [&](const Error& error) { return json ? report(refusedResult(error), true) : complain(error); };
  ExecRequest request;
  request.command.assign(arguments.command.begin(), arguments.command.end());
  if (const auto text = arguments.value(kTimeout)) {
    const auto seconds = secondsFrom(*text, "--timeout");
    if (!seconds) return complain(seconds.error());
    request.timeout_seconds = *seconds;
  }
  if (arguments.has(kBackground)) {
    auto session = sessionOf(arguments, "session exec", 1, 1);
    return session ? startInBackground(*session, request, json) : refuse(session.error());
  }
  if (auto counted = countOperands(arguments, "session exec", 1, 1); !counted) return refuse(counted.error());
  auto store = SessionStore::open();
  if (!store) return refuse(store.error());
  request.out = request.err = json ? StreamMode::capture : StreamMode::relay;
  request.relay_stdin = !arguments.has(kNoInput);
  request.interactive = !json && request.relay_stdin && ::isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  surviveBrokenPipes();
  const auto result = store->exec(arguments.operands[0], request);
  return report(result ? *result : refusedResult(result.error()), json);
}

}  // namespace

constinit const Verb kSessionExec{
    .path = "session exec",
    .summary = "Run a command in a session",
    .description =
        "Standard input, output and error are passed through; the exit status is the command's, as with `caisson run`. "
        "Processes that the command leaves behind live on in the session. In a session with --net proxy, a user at a "
        "terminal is asked about hosts that the policy does not list; without one, with --json and in the background "
        "they are "
        "refused.",
    .examples =
        "caisson session exec fix-login -- make test\n"
        "caisson session exec fix-login --timeout 30s --json -- npm test",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID", .command = "-- CMD [ARG]..."},
    .perform = perform,
};

}  // namespace caisson::cli
