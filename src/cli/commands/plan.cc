// `caisson plan`: prints the plan of a run without running anything.
#include "caisson/run.h"

#include <unistd.h>

#include "cli/approval.h"
#include "cli/learn/options.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/safe_text.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the plan as JSON."};
constexpr Option kOutputOptions[] = {kJson};
constexpr Option kPlanLearn{.name = kLearn.name,
                            .value = kLearn.value,
                            .help = "Show the plan of a run with --learn. Nothing is written to FILE."};
constexpr Option kPlanTrace{.name = kTrace.name, .value = kTrace.value, .help = "Show the plan of a run with --trace."};
constexpr Option kLearnOptions[] = {kPlanLearn, kPlanTrace};
constexpr OptionGroup kOwnGroups[] = {{"Output", kOutputOptions}, {"Learning", kLearnOptions}};
constexpr auto kGroups = withPolicyGroups(kOwnGroups);

int perform(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return printError(policy.error());
  auto approvals = namedApprovals(arguments);
  if (!approvals) return printError(approvals.error());

  Request request = requestWith(*std::move(policy));
  request.command.assign(arguments.command.begin(), arguments.command.end());
  if (request.command.empty()) request.command = {"true"};  // the plan does not depend on the command
  request.approvals = *std::move(approvals);
  // Set what `run` would set here: limits and environment depend on the terminal and on the cgroup.
  request.interactive = ::isatty(STDIN_FILENO) == 1;
  request.own_scope = true;
  const auto learns = wantsLearning(arguments, request.policy.model());
  if (!learns) return printError(learns.error());
  request.learn = *learns;
  const bool json = arguments.has(kJson);
  const auto text = describePlan(request, json);
  if (!text) return printError(attributeToFlag(text.error(), arguments));
  const std::string shown = json ? *text : safeLines(*text);
  return print(shown.ends_with('\n') ? shown : shown + "\n");
}

}  // namespace

constinit const Verb kPlan{
    .path = "plan",
    .summary = "Show what a run may see and do here, without running it",
    .description =
        "Takes the flags of `caisson run` and prints what they mean on this machine: mounts, Landlock rules, "
        "system calls, limits, network, and which protections this machine cannot give. `run` with the same flags "
        "carries out exactly this plan.",
    .examples =
        "caisson plan -- make test\n"
        "caisson plan --profile strict --json",
    .topic = Topic::run,
    .syntax = {.groups = kGroups, .command = "[-- CMD [ARG]...]"},
    .perform = perform,
};

}  // namespace caisson::cli
