// `caisson run`: one command in a sandbox of its own.
#include "caisson/run.h"

#include "cli/approval.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/run_report.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr OptionGroup kOwnGroups[] = {{"Output", kResultOptions}};
constexpr auto kGroups = withPolicyGroups(kOwnGroups);

Result<Request> requestFrom(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return fail(policy.error());
  auto approvals = obtainApprovals(arguments, policy->model());
  if (!approvals) return fail(approvals.error());

  Request request = requestOnThisTerminal(arguments, *std::move(policy));
  request.command.assign(arguments.command.begin(), arguments.command.end());
  request.approvals = *std::move(approvals);
  return request;
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return complain(usageError("run", "no command given; it comes after `--`", "caisson run -- ls -l"));
  return runAndReport(arguments, requestFrom);
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
