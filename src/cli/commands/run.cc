// `caisson run`: runs one command in a new sandbox.
#include "caisson/run.h"

#include <filesystem>
#include <optional>

#include "cli/approval.h"
#include "cli/learn/learn.h"
#include "cli/learn/merge.h"
#include "cli/learn/options.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/result/file.h"
#include "cli/result/report.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/model.h"
#include "policy/profiles/profiles.h"

namespace caisson::cli {
namespace {

constexpr Option kLearnForce{.name = "force", .help = "With --learn: replace FILE, whatever is in it."};

constexpr Option kLearnOptions[] = {kLearn, kLearnForce, kTrace};
constexpr OptionGroup kOwnGroups[] = {{"Output", kResultOptions}, {"Learning", kLearnOptions}};
constexpr auto kGroups = withPolicyGroups(kOwnGroups);

/// The file or profile that a learned policy extends: that of this run.
Result<std::string> baseOfLearning(const Arguments& arguments, const policy::Policy& policy) {
  if (const auto file = arguments.value(kPolicyFile)) return std::filesystem::absolute(*file).string();
  if (policy::builtin(policy.name)) return policy.name;
  return fail(usageError("--learn", "the run would start from a project's caisson.toml, and what is learned extends it",
                         "name it: --policy caisson.toml"));
}

Result<Request> requestFrom(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return fail(policy.error());
  if (arguments.command.empty() && policy->model().filesystem.root == "host")
    return fail(usageError("run", "no command given; it comes after `--`", "caisson run -- ls -l"));
  auto approvals = obtainApprovals(arguments, policy->model());
  if (!approvals) return fail(approvals.error());

  Request request = requestOnThisTerminal(arguments, *std::move(policy));
  request.command.assign(arguments.command.begin(), arguments.command.end());
  request.approvals = *std::move(approvals);
  const auto learns = wantsLearning(arguments, request.policy.model());
  if (!learns) return fail(learns.error());
  request.learn = *learns;
  return request;
}

/// The file of --learn, as it was before the run: the payload may own its directory.
struct LearnFile {
  std::string path;
  ResultFile file;
  std::optional<std::string> before;  ///< content to extend; nothing: the file is written anew
  bool own = false;                   ///< it is the policy of this run
};

Result<LearnFile> prepareLearning(const Arguments& arguments) {
  LearnFile learning{.path = std::string(arguments.value(kLearn).value_or(""))};
  const std::string option = "--learn " + learning.path;
  if (!learning.path.ends_with(".toml")) {
    return fail(usageError(option, "expected a name that ends in .toml", "the policy is written in TOML"));
  }
  auto file = ResultFile::prepare(learning.path, "--learn");
  if (!file) return fail(file.error());
  learning.file = *std::move(file);
  auto before = learning.file.read();
  if (!before) return fail(before.error());
  learning.before = *std::move(before);
  if (!learning.before) return learning;
  const auto policy = arguments.value(kPolicyFile);
  learning.own = policy && learning.file.isSameFile(std::string(*policy));
  if (arguments.has(kLearnForce)) {
    if (learning.own) {
      return fail(usageError(option, "--force would replace the policy that the run starts from",
                             "leave --force out: the file is extended"));
    }
    learning.before.reset();
  } else if (!learning.own && !isLearnedPolicy(*learning.before)) {
    return fail(usageError(option, "the file exists and was not written by --learn",
                           "name another file, or replace it with --force"));
  }
  return learning;
}

/// A file can be extended by lessons of runs that start from what it starts from, or from itself.
Result<void> checkSameBase(const LearnFile& learning, const Arguments& arguments, const policy::Policy& policy) {
  auto base = baseOfLearning(arguments, policy);
  if (!base) return fail(base.error());
  if (!learning.before || learning.own) return {};
  auto known = baseOfPolicy(learning.path, *learning.before);
  if (!known) return fail(known.error());
  if (*known == *base) return {};
  return fail(usageError(
      "--learn " + learning.path,
      "the file extends " + safeLine(*known) + ", and this run starts from " + safeLine(*base),
      "start from the file itself with --policy " + learning.path + ", name another file, or replace it with --force"));
}

/// Writes the proposal to its file and, in readable form, to standard error.
int learn(const Arguments& arguments, const LearnFile& learning, const Request& request, const RunResult& result) {
  const auto base = baseOfLearning(arguments, request.policy.model());
  if (!base) return printError(base.error());
  const Proposal proposal = proposePolicy(request.policy.model(), *base, result);
  if (!learning.before) {
    if (const auto written = learning.file.write(proposal.policy); !written) return printError(written.error());
    printNotice("proposed policy:");
    for (const std::string& line : proposal.diff) printNotice(line);
    return 0;
  }
  const auto merged = mergeLessons(learning.path, *learning.before, proposal, learning.own);
  if (!merged) {
    for (const std::string& line : proposal.diff) printNotice(line);
    return printError(merged.error());
  }
  if (const auto written = learning.file.write(merged->text); !written) return printError(written.error());
  printNotice("changes to " + safeLine(learning.path) + ":");
  if (merged->diff.empty()) printNotice("  nothing: the file has what the run needs");
  for (const std::string& line : merged->diff) printNotice(safeLine(line));
  // The file may have had more in it than runs with --learn wrote.
  if (!merged->widenings.empty()) printNotice("with it, the file widens:");
  for (const std::string& line : merged->widenings) printNotice("  " + safeLine(line));
  for (const std::string& line : proposal.refused) printNotice("  # " + line);
  for (const std::string& line : proposal.remarks) printNotice("  # " + line);
  return 0;
}

/// Prints one line per path and operation. With --json they are in the object.
void tellTrace(const RunResult& result) {
  for (const FileRequest& request : result.files) {
    std::string line = "trace: " + std::string(name(request.operation)) + " " + safeLine(request.path);
    if (request.state != FileState::present) line += " (" + std::string(name(request.state)) + ")";
    if (request.count > 1) line += ", " + std::to_string(request.count) + " times";
    printNotice(line);
  }
}

int perform(const Arguments& arguments) {
  const bool trace = arguments.has(kTrace) && !arguments.has(kResultJson);
  if (arguments.has(kLearnForce) && !arguments.has(kLearn)) {
    return printError(usageError("--force", "needs --learn FILE"));
  }
  if (!arguments.has(kLearn) && !trace) return runAndReport(arguments, requestFrom);
  std::optional<LearnFile> learning;
  if (arguments.has(kLearn)) {
    auto prepared = prepareLearning(arguments);
    if (!prepared) return printError(prepared.error());
    learning = *std::move(prepared);
  }
  const auto make = [&](const Arguments& given) {
    auto request = requestFrom(given);
    if (!request || !learning) return request;
    if (auto checked = checkSameBase(*learning, given, request->policy.model()); !checked)
      request = fail(checked.error());
    return request;
  };
  return runAndReport(arguments, make, [&](const Request& request, const RunResult& result) {
    if (trace) tellTrace(result);
    return learning ? learn(arguments, *learning, request, result) : 0;
  });
}

}  // namespace

constinit const Verb kRun{
    .path = "run",
    .summary = "Run a command in a sandbox",
    .description =
        "Runs CMD with the current directory at /workspace. By default its changes there are dropped at the end, the "
        "system is read-only, there is no network, the environment is clean, and secrets are not visible.\n\n"
        "Standard input, output and error are the caller's. Files, pipes and UNIX sockets are passed to the command "
        "directly: input it does not read stays unread, and output is not truncated. On a terminal the command gets "
        "a separate terminal; other descriptors are copied through a pipe (see -n). "
        "With --net proxy, a user at a terminal is asked about hosts that the policy does not list. "
        "The exit status is the command's, or 124 after a time-out, 125 if caisson could not or would not run it, "
        "126 or 127 if CMD cannot be executed or found, 128+N after signal N.",
    .examples =
        "caisson run -- make test\n"
        "caisson run --workspace .:rw --ro ~/datasets -- python3 train.py\n"
        "caisson run --profile strict --timeout 5s --json -- ./solution < input.txt\n"
        "caisson run --learn more.toml -- ./installer",
    .topic = Topic::run,
    .syntax = {.groups = kGroups, .command = "-- CMD [ARG]..."},
    .perform = perform,
};

}  // namespace caisson::cli
