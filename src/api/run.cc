// The public run(): policy, host facts, plan, supervision.
#include "caisson/run.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>

#include <algorithm>
#include <optional>

#include "approval/owner.h"
#include "host/facts.h"
#include "host/root_image.h"
#include "host/search_progress.h"
#include "plan/image_root.h"
#include "plan/optional_layers.h"
#include "plan/plan.h"
#include "policy/rules/command.h"
#include "supervise/run_record.h"
#include "supervise/sandbox_id.h"
#include "supervise/streams/handed_streams.h"
#include "supervise/supervise.h"
#include "supervise/workspace/changes.h"
#include "supervise/workspace/exec_config.h"

namespace caisson {
namespace {

Result<void> checkRequest(const Request& request) {
  if (request.command.empty()) {
    return fail(plainError(Stage::usage, "run", "",
                           plan::hasOtherRoot(request.policy.model())
                               ? "no command given, and the root names none: it is a directory, or an image without one"
                               : "no command given",
                           "name a program and its arguments"));
  }
  for (const std::string& word : request.command) {
    if (word.find('\0') != std::string::npos) {
      return fail(plainError(Stage::usage, "run", request.command.front(), "an argument contains a NUL byte",
                             "no program can receive that; pass the data by standard input"));
    }
  }
  if (request.command.front().empty()) {
    return fail(plainError(Stage::usage, "run", "", "the program's name is empty", "name a program"));
  }
  return {};
}

/// Level `none` gives the program all rights of the caller and network mode `host` the host's network, so each run
/// needs the owner's approval for them. A policy may require approvals for more.
Result<void> checkApprovals(const Request& request) {
  const policy::Policy& policy = request.policy.model();
  const auto approved = [&](const std::string& what) {
    return std::find(request.approvals.begin(), request.approvals.end(), what) != request.approvals.end();
  };
  if (policy.isolation.level == policy::Level::none && !approved("level:none")) {
    return fail(plainError(Stage::policy, "run", "isolation.level", "level none needs an owner's approval",
                           "on a terminal: caisson run --level none --approve level:none -- ..."));
  }
  if (policy.network.mode == policy::NetworkMode::host && !approved("net:host")) {
    return fail(plainError(Stage::policy, "run", "network.mode", "the host's network needs an owner's approval",
                           "on a terminal: caisson run --net host --approve net:host -- ..."));
  }
  for (const std::string& word : policy.approvals.required) {
    if (approved("policy:" + word)) continue;
    return fail(plainError(Stage::policy, "run", "approvals.required", "\"" + word + "\" needs an owner's approval",
                           "on a terminal: --approve policy:" + word));
  }
  return {};
}

/// Denied paths that cannot be masked since they do not exist; the launch would fail, so the plan is refused too.
Result<void> checkDeniedPaths(const plan::Plan& plan, const plan::HostFacts& facts) {
  for (const plan::Step& step : plan.steps) {
    const auto* mask = std::get_if<plan::MaskPath>(&step);
    if (mask == nullptr || mask->absent != plan::MaskPath::Absent::refuse) continue;
    const std::string& workspace = plan.workspace_target;
    const bool inside = !workspace.empty() && mask->target.starts_with(workspace + "/");
    const std::string path = inside ? facts.workspace.path + mask->target.substr(workspace.size()) : mask->target;
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0 || errno != ENOENT) continue;
    return fail(withCode(plainError(Stage::mounts, "plan", mask->target,
                                    "it does not exist, and a path that is created later cannot be denied in a "
                                    "writable tree",
                                    "use --workspace DIR:overlay, or create it first"),
                         ErrorCode::denied_path_missing));
  }
  return {};
}

/// `tier`: instead of the policy's.
Result<plan::Plan> planFor(const Request& request, sys::CgroupBase* cgroups,
                           std::optional<policy::Tier> tier = std::nullopt) {
  if (auto checked = checkRequest(request); !checked) return fail(checked.error());
  if (auto checked = checkApprovals(request); !checked) return fail(checked.error());
  auto policy = approval::underOwner(request.policy.model());
  if (!policy) return fail(policy.error());
  if (tier) policy->isolation.tier = *tier;
  plan::HostFacts facts = host::collectFacts(*policy, {.own_scope = request.own_scope,
                                                       .found = cgroups,
                                                       .progress = host::searchProgress(request.on_progress),
                                                       .will_run = cgroups != nullptr});
  facts.passed = supervise::inspectPassed(policy->process.pass_descriptors);
  auto plan = plan::build(*policy, facts, {request.command, request.interactive, request.learn});
  if (!plan) return plan;
  if (auto checked = checkDeniedPaths(*plan, facts); !checked) return fail(checked.error());
  return plan;
}

RunResult refused(const Request& request, const Error& error) {
  if (supervise::isCommandRefusal(error)) {
    RunResult result = supervise::refusedResult(error, supervise::newSandboxId());
    supervise::recordRefusal(request, result);
    return result;
  }
  RunResult result;
  result.sandbox_id = supervise::newSandboxId();
  result.error = error;
  return result;
}

/// Delays the result to a multiple of the time quantum and rounds its wall time and lifecycle times up, so that a
/// payload cannot signal by its duration.
void waitForQuantum(const plan::Plan& plan, RunResult& result) {
  Usage& usage = result.usage;
  if (plan.time_quantum_seconds <= 0) return;
  const double quantum_ms = plan.time_quantum_seconds * 1e3;
  const double rounded = std::ceil(usage.wall_ms / quantum_ms) * quantum_ms;
  const double left = rounded - usage.wall_ms;
  timespec pause{static_cast<time_t>(left / 1e3), static_cast<long>(std::fmod(left, 1e3) * 1e6)};
  while (::nanosleep(&pause, &pause) != 0 && errno == EINTR) {
  }
  usage.wall_ms = rounded;
  for (StateChange& step : result.lifecycle) step.at_ms = std::ceil(step.at_ms / quantum_ms) * quantum_ms;
}

}  // namespace

int exitStatus(const RunResult& result) {
  constexpr int kTimeOut = 124, kRefused = 125, kNotExecutable = 126, kNotFound = 127, kSignal = 128;
  switch (result.outcome) {
    case OutcomeKind::exited: return result.exit_code;
    case OutcomeKind::signaled: return kSignal + result.signal;
    case OutcomeKind::limit:
      if (result.limit == Limit::time) return kTimeOut;
      if (result.exit_code != 0) return result.exit_code;  // the program hit the limit and exited by itself
      return kSignal + (result.signal != 0 ? result.signal : SIGKILL);
    case OutcomeKind::cancelled: return kSignal + SIGTERM;
    case OutcomeKind::denied: return kRefused;
    case OutcomeKind::setup_failed:
      if (!result.error) return kRefused;
      if (result.error->code == ErrorCode::no_interpreter) return kNotFound;
      if (result.error->code != ErrorCode::program_not_started) return kRefused;
      if (result.error->sys_errno == ENOENT || result.error->sys_errno == ENOTDIR) return kNotFound;
      if (result.error->sys_errno == EACCES || result.error->sys_errno == ENOEXEC ||
          result.error->sys_errno == EISDIR || result.error->sys_errno == ENAMETOOLONG) {
        return kNotExecutable;
      }
      return kRefused;
  }
  return kRefused;
}

namespace {

/// Whether the run failed for lack of a user namespace, under a policy that accepts the Landlock tier then.
bool wantsLandlockTier(const Request& request, const RunResult& result) {
  const policy::Isolation& isolation = request.policy.model().isolation;
  return result.error && result.error->code == ErrorCode::no_user_namespace &&
         isolation.tier == policy::Tier::namespaces &&
         plan::mayMiss(request.policy.model(), policy::OptionalLayer::landlock);
}

Result<RunResult> runIn(const Request& request, std::optional<policy::Tier> tier) {
  sys::CgroupBase cgroups;
  const std::vector<std::string> notices = supervise::finishKilledRuns();
  auto plan = planFor(request, &cgroups, tier);
  if (!plan) {
    // Missing host features and a denied command are a result; an invalid request is an error.
    if (plan.error().stage != Stage::host && !supervise::isCommandRefusal(plan.error())) return fail(plan.error());
    return refused(request, plan.error());
  }
  plan->notices.insert(plan->notices.begin(), notices.begin(), notices.end());
  if (request.on_notice) {
    for (const std::string& notice : plan->covered) request.on_notice(notice);
  }
  RunResult result = supervise::supervise(*plan, request, std::move(cgroups));
  if (!tier && wantsLandlockTier(request, result)) return runIn(request, policy::Tier::landlock);
  supervise::explainMissingNetwork(request.policy.model().network.mode, request.command, "", result);
  waitForQuantum(*plan, result);
  return result;
}

}  // namespace

Result<RunResult> run(const Request& request) {
  if (!request.command.empty()) return runIn(request, std::nullopt);
  auto command = host::imageCommand(request.policy.model());
  if (!command) return fail(command.error());
  Request whole = request;
  whole.command = *std::move(command);
  return runIn(whole, std::nullopt);
}

Result<std::string> describePlan(const Request& request, bool json) {
  auto plan = planFor(request, nullptr);
  if (!plan) return fail(plan.error());
  return json ? plan::describeJson(*plan) : plan::describe(*plan);
}

}  // namespace caisson
