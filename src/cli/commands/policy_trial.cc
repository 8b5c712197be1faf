// `caisson policy test`: runs a command under a policy and reports what the policy denied it.
#include <algorithm>

#include "cli/approval.h"
#include "cli/commands/policy_author.h"
#include "cli/learn/learn.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/result/notices.h"
#include "cli/result/report.h"
#include "cli/safe_text.h"
#include "policy/model.h"

namespace caisson::cli {
namespace {

constexpr Option kTrialOptions[] = {kResultFile, kNoInput, kApprove};
constexpr OptionGroup kTrialGroups[] = {{"Options", kTrialOptions}};
constexpr int kSomethingDenied = 1;

/// The arguments of `caisson run --quiet --policy FILE`: the report replaces the notices, and no prompt offers more
/// than the policy gives.
Arguments asForRun(const Arguments& arguments) {
  Arguments result = arguments;
  result.given.push_back({&kPolicyFile, arguments.operands[0]});
  result.given.push_back({&kQuiet, {}});
  return result;
}

Result<Request> trialRequest(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return fail(policy.error());
  if (policy->model().isolation.level == policy::Level::none) {
    return fail(usageError("policy test", "level none denies nothing", "set isolation.level to full or process"));
  }
  auto approvals = obtainApprovals(arguments, policy->model());
  if (!approvals) return fail(approvals.error());
  Request request = requestOnThisTerminal(arguments, *std::move(policy));
  request.command.assign(arguments.command.begin(), arguments.command.end());
  request.approvals = *std::move(approvals);
  request.learn = true;
  return request;
}

/// Denials that the proposal does not cover already.
std::vector<std::string> otherDenials(const Proposal& proposal, const RunResult& result) {
  std::vector<std::string> lines;
  for (const Denial& denial : result.denials) {
    const std::string object = safeLine(denial.object);
    const bool proposed =
        std::ranges::any_of(proposal.lessons, [&](const Lesson& lesson) { return lesson.key == denial.rule; });
    const bool refused = std::ranges::any_of(proposal.refused, [&](const std::string& line) {
      return !object.empty() && line.find(object) != std::string::npos;
    });
    if (!proposed && !refused) lines.push_back(describeDenial(denial));
  }
  return lines;
}

int report(std::string_view file, const Request& request, RunResult result) {
  // A successful program did without the calls that it only probed for.
  if (exitStatus(result) == 0) std::erase_if(result.denials, [](const Denial& denial) { return denial.probe; });
  const Proposal proposal = proposePolicy(request.policy.model(), std::string(file), result);
  const std::vector<std::string> others = otherDenials(proposal, result);
  const bool denied = !proposal.lessons.empty() || !proposal.refused.empty() || !others.empty();
  const std::string subject = "policy test: " + std::string(file);
  printNotice(subject + (denied ? " denied what follows" : ": nothing was denied"));
  if (!proposal.lessons.empty()) printNotice("denied, and this would allow it:");
  for (const Lesson& lesson : proposal.lessons)
    printNotice("  " + lesson.key + " = " + lesson.value + "    # " + lesson.reason);
  if (!proposal.refused.empty() || !others.empty()) printNotice("denied, and nothing is proposed:");
  for (const auto* lines : {&proposal.refused, &others})
    for (const std::string& line : *lines) printNotice("  " + line);
  if (!proposal.remarks.empty()) printNotice("allowed:");
  for (const std::string& line : proposal.remarks) printNotice("  " + line);
  return denied ? kSomethingDenied : 0;
}

int performTrial(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return printError(usageError("policy test", "expected one policy file before `--`",
                                 "caisson policy test caisson.toml -- make test"));
  }
  if (arguments.command.empty()) {
    return printError(usageError("policy test", "no command given; it comes after `--`",
                                 "caisson policy test caisson.toml -- make test"));
  }
  return runAndReport(asForRun(arguments), trialRequest, [&](const Request& request, const RunResult& result) {
    return report(arguments.operands[0], request, result);
  });
}

}  // namespace

constinit const Verb kPolicyTest{
    .path = "policy test",
    .summary = "Run a command and report what a policy denies it",
    .description =
        "Runs CMD under the policy in FILE, as `caisson run --policy FILE` would, and reports on standard error what "
        "was denied: files that are not shown, hidden or read-only, programs, hosts, system calls and limits; which "
        "keys would allow it; and what was used. The command really runs, with its own input and output, and changes "
        "what the policy lets it change. Nothing is widened and no file is written: `caisson run --learn` does "
        "that.\n\n"
        "The exit status is 1 if something was denied, else the command's own; 125 if caisson could not run it.",
    .examples = "caisson policy test caisson.toml -- make test",
    .topic = Topic::policy,
    .syntax = {.groups = kTrialGroups, .operands = "FILE", .command = "-- CMD [ARG]..."},
    .perform = performTrial,
};

}  // namespace caisson::cli
