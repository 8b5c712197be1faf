// `caisson run`: one command in a sandbox of its own.
#include "caisson/run.h"

#include <unistd.h>

#include <csignal>
#include <optional>

#include "cli/approval.h"
#include "cli/notices.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/result_file.h"
#include "cli/result_json.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Capture the output and print one JSON object instead of it."};
constexpr Option kResult{.name = "result",
                         .value = "FILE",
                         .help = "Also write that JSON object to FILE, while the output goes its normal way."};
constexpr Option kQuiet{.name = "quiet", .letter = 'q', .help = "Print no notices after the run, only errors."};

constexpr Option kOutputOptions[] = {kJson, kResult, kQuiet};
constexpr OptionGroup kOwnGroups[] = {{"Output", kOutputOptions}};
constexpr auto kGroups = withPolicyGroups(kOwnGroups);

/// A reader of ours that goes away must end the run in order, not kill us between making and removing a sandbox.
/// A handler rather than SIG_IGN: exec resets handlers, so the payload gets the default.
void surviveBrokenPipes() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

Result<Request> requestFrom(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return fail(policy.error());
  auto approvals = obtainApprovals(arguments, policy->model());
  if (!approvals) return fail(approvals.error());

  const bool json = arguments.has(kJson);
  Request request{.policy = *std::move(policy)};
  request.command.assign(arguments.command.begin(), arguments.command.end());
  request.out = request.err = json ? StreamMode::capture : StreamMode::relay;
  request.relay_stdin = true;
  request.interactive = !json && ::isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  request.own_scope = true;
  request.approvals = *std::move(approvals);
  return request;
}

Result<RunResult> execute(const Arguments& arguments) {
  const auto request = requestFrom(arguments);
  if (!request) return fail(request.error());
  auto result = run(*request);
  if (!result) return fail(inWordsOfFlags(result.error(), arguments));
  return result;
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return complain(usageError("run", "no command given; it comes after `--`", "caisson run -- ls -l"));
  std::optional<ResultFile> file;
  if (const auto path = arguments.value(kResult)) {
    auto prepared = ResultFile::prepare(*path);
    if (!prepared) return complain(prepared.error());
    file = *std::move(prepared);
  }
  surviveBrokenPipes();

  const auto ended = execute(arguments);
  const RunResult result = ended ? *ended : refusedResult(ended.error());
  int status = ended ? exitStatus(result) : kRefused;

  const bool json = arguments.has(kJson);
  const std::string rendered = json || file ? renderResult(result) + "\n" : "";
  if (json) {
    if (const int failed = print(rendered); failed != 0) status = failed;
  }
  if (file) {
    if (const auto written = file->write(rendered); !written) status = complain(written.error());
  }
  if (result.error) complain(*result.error);
  // With --json everything a notice says is in the object already.
  if (!json && !arguments.has(kQuiet))
    for (const std::string& line : noticesFor(result, ::isatty(STDERR_FILENO) == 1)) tell(line);
  return status;
}

}  // namespace

constinit const Verb kRun{
    .path = "run",
    .summary = "Run a command in a sandbox",
    .description =
        "Runs CMD with the current directory at /workspace. By default its changes there are dropped at the end, the "
        "system is read-only, there is no network, the environment is clean, and secrets are not visible.\n\n"
        "Standard input, output and error are passed through; on a terminal the command gets a terminal of its own. "
        "The exit status is the command's, or 124 after a time-out, 125 if caisson could not or would not run it, "
        "126 or 127 if CMD cannot be executed or found, 128+N after signal N.",
    .examples =
        "caisson run -- make test\n"
        "caisson run --workspace .:rw --ro ~/datasets -- python3 train.py\n"
        "caisson run --profile strict --timeout 5s --json -- ./solution < input.txt",
    .topic = Topic::run,
    .syntax = {.groups = kGroups, .command = "-- CMD [ARG]..."},
    .perform = perform,
};

}  // namespace caisson::cli
