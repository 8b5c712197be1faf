// `caisson session`: create, list, renew, destroy.
#include <algorithm>
#include <ctime>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"
#include "cli/session_options.h"
#include "host/state_disk.h"
#include "plan/landlock_tier.h"
#include "policy/model.h"
#include "policy/units.h"
#include "supervise/disk/kept_logs.h"
#include "supervise/workspace/exec_config.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::cli {
namespace {

constexpr Option kName{.name = "name", .value = "NAME", .help = "A name that works wherever the id does."};
constexpr Option kTtl{
    .name = "ttl", .value = "DUR", .help = "End the session after so long without a request (default: 1h)."};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};

constexpr Option kAutoCheckpoint{.name = "auto-checkpoint",
                                 .help = "Checkpoint before each command, if anything changed since the last one."};
constexpr Option kCreateOptions[] = {kName, kTtl, kAutoCheckpoint, kJson};
constexpr OptionGroup kCreateOwn[] = {{"Session", kCreateOptions}};
constexpr auto kCreateGroups = withSessionGroups(kCreateOwn);

constexpr Option kListOptions[] = {kJson};
constexpr OptionGroup kListGroups[] = {{"Output", kListOptions}};

/// Why the session has no workspace although one was not declined; or empty.
std::string workspaceNotice(const Policy& policy, const SessionInfo& info) {
  const policy::Workspace& workspace = policy.model().filesystem.workspace;
  if (!info.workspace.empty() || workspace.mode == policy::WorkspaceMode::none) return {};
  return "the current directory is a home directory or above one, so the session has no workspace and /workspace is "
         "empty; name one with --workspace DIR";
}

/// Why the session's changes are in memory only; or empty.
std::string memoryNotice() {
  const std::string home = sys::stateHome();
  const auto stores = sys::RootDir::open(home + "/stores");
  const std::string why = stores ? host::whyNoOverlay(stores->descriptor()) : std::string();
  if (why.empty()) return {};
  return "the session's changes are in memory and end with the machine or container (" + home + ": " + why +
         "); to keep them, set CAISSON_HOME to a directory on a volume";
}

int create(const Arguments& arguments) {
  auto policy = policyFrom(arguments);
  if (!policy) return printError(policy.error());
  if (auto checked = checkForSession(arguments, policy->model()); !checked) return printError(checked.error());
  if (auto approvals = obtainApprovals(arguments, policy->model()); !approvals) return printError(approvals.error());
  SessionOptions options{.policy = *std::move(policy)};
  if (const auto name = arguments.value(kName)) {
    options.name = *name;
    if (name->empty()) return printError(usageError("--name", "a name is expected", "caisson session create --help"));
  }
  if (const auto ttl = arguments.value(kTtl)) {
    const auto seconds = secondsFrom(*ttl, "--ttl");
    if (!seconds) return printError(seconds.error());
    options.ttl_seconds = *seconds;
  }
  options.auto_checkpoint = arguments.has(kAutoCheckpoint);
  options.keep = true;
  auto store = openSessions();
  if (!store) return printError(store.error());
  const auto session = store->create(options);
  if (!session) return printError(attributeToFlag(session.error(), arguments));
  const auto info = session->info();
  if (!info) return printError(info.error());
  const bool tier = std::ranges::find(info->warnings, plan::kLandlockTierLosses) != info->warnings.end();
  std::vector<std::string> notices{workspaceNotice(options.policy, *info), tier ? "" : memoryNotice()};
  std::erase(notices, "");
  if (!arguments.has(kJson)) {
    if (tier) {
      for (const std::string& warning : info->warnings) printNotice("warning: " + warning);
    }
    for (const std::string& notice : notices) printNotice(notice);
    return print(session->id() + "\n");
  }
  JsonWriter json;
  json.beginObject().key("id").string(session->id()).key("name").string(options.name);
  json.key("ttl_seconds").number(options.ttl_seconds).key("workspace").string(info->workspace);
  json.key("notices").beginArray();
  for (const std::string& notice : notices) json.string(notice);
  json.end().key("directory").string(info->directory).key("warnings").beginArray();
  for (const std::string& warning : info->warnings) json.string(warning);
  json.end().end();
  return print(json.text() + "\n");
}

void writeListed(JsonWriter& json, const SessionInfo& info) {
  json.beginObject();
  writeInfo(json, info);
  json.end();
}

std::string lineOf(const SessionInfo& info) {
  std::string line = info.id;
  if (!info.problem.empty()) {
    const std::string name = info.name.empty() ? "" : "  " + safeLine(info.name);
    return line + name + "  unusable: " + safeLine(info.problem) + "\n";
  }
  if (info.expires_in > 0) {
    line += (info.live ? "  live  " : "  idle  ") + durationText(info.expires_in) + " left";
  } else {
    line += "  expired, uncommitted changes kept for " + durationText(info.removed_in);
  }
  if (!info.name.empty()) line += "  " + safeLine(info.name);
  line += "  " + (info.workspace.empty() ? "(no workspace)" : safeLine(info.workspace));
  return line + "\n";
}

int list(const Arguments& arguments) {
  auto store = openSessions();
  if (!store) return printError(store.error());
  const auto infos = store->list();
  if (!infos) return printError(infos.error());
  if (arguments.has(kJson)) {
    JsonWriter json;
    json.beginObject().key("sessions").beginArray();
    for (const SessionInfo& info : *infos) writeListed(json, info);
    json.end().end();
    return print(json.text() + "\n");
  }
  std::string text;
  for (const SessionInfo& info : *infos) text += lineOf(info);
  return print(text);
}

int renew(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session renew", 2, 2);
  if (!session) return printError(session.error());
  const auto seconds = secondsFrom(arguments.operands[1], "session renew");
  if (!seconds) return printError(seconds.error());
  if (auto renewed = session->renew(*seconds); !renewed) return printError(renewed.error());
  return 0;
}

/// Warns about changes that would be lost; empty if there are none.
std::string lossWarning(const SessionStore& store, std::string_view session) {
  const auto found = store.find(session);
  const auto info = found ? found->info() : fail(found.error());
  if (!info || info->workspace.empty()) return {};  // damaged, or no workspace to commit to
  const auto uncommitted = found->hasUncommittedChanges();
  if (!uncommitted || !*uncommitted) return {};
  return "warning: " + std::string(session) + " has uncommitted changes, which are lost";
}

/// Reports interrupted commits that could not be finished before the session was destroyed.
void printInterruptedCommits(const SessionStore& store, const std::string& id) {
  const auto commits = store.replaced(id);
  for (const ReplacedByCommit& one : commits ? *commits : std::vector<ReplacedByCommit>{}) {
    if (!one.interrupted) continue;
    printNotice("warning: a commit of " + id + " was interrupted and could not be finished: what it replaced is in " +
                safeLine(one.location) + "; `caisson session uncommit " + id + "` finishes and undoes it");
  }
}

int destroy(const Arguments& arguments) {
  if (auto counted = countOperands(arguments, "session destroy", 1, 0); !counted) return printError(counted.error());
  auto store = openSessions();
  if (!store) return printError(store.error());
  int status = 0;
  for (const std::string_view session : arguments.operands) {
    const std::string warning = lossWarning(*store, session);
    const auto found = store->find(session);
    const std::string id = found ? found->id() : std::string(session);
    if (auto destroyed = store->destroy(session); !destroyed) {
      status = printError(destroyed.error());
      continue;
    }
    if (!warning.empty()) printNotice(warning);
    printInterruptedCommits(*store, id);
    for (const std::string& notice : supervise::finishKilledRuns()) printNotice(notice);
    for (const std::string& path : supervise::keptLogsOf(id)) printNotice("logs of " + id + " are kept in " + path);
  }
  return status;
}

}  // namespace

Result<void> countOperands(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most) {
  const std::size_t count = arguments.operands.size();
  if (count >= least && (most == 0 || count <= most)) return {};
  std::string expected = "expected " + std::to_string(least);
  if (most == 0) expected = "expected at least " + std::to_string(least);
  if (most > least) expected += " to " + std::to_string(most);
  expected += std::max(least, most) == 1 ? " argument" : " arguments";
  const auto found = std::ranges::find(kSession.verbs, verb, &Verb::path);
  if (found != kSession.verbs.end()) expected += ": " + std::string((*found)->syntax.operands);
  return fail(usageError(verb, expected, "caisson " + std::string(verb) + " --help"));
}

Result<Session> sessionOf(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most) {
  if (auto counted = countOperands(arguments, verb, least, most); !counted) return fail(counted.error());
  auto store = openSessions();
  if (!store) return fail(store.error());
  return store->find(arguments.operands[0]);
}

Result<double> secondsFrom(std::string_view text, std::string_view subject) {
  const auto seconds = policy::parseSeconds(text);
  if (seconds && *seconds > 0) return *seconds;
  return fail(usageError(
      subject, seconds ? "invalid duration " + inQuotes(text) + ": expected more than 0 seconds" : seconds.error()));
}

constinit const Verb kSessionCreate{
    .path = "session create",
    .summary = "Make a workspace that lasts, and print its id",
    .description =
        "The session begins with the current directory (or --workspace DIR) at /workspace. What its commands write "
        "there "
        "is kept apart, below CAISSON_HOME, until it is committed; it can be checkpointed, restored and forked. The "
        "policy given here holds for all of its commands.",
    .examples =
        "caisson session create --name fix-login\n"
        "caisson session create --workspace ~/src/app --ttl 8h --memory 1G",
    .topic = Topic::session,
    .syntax = {.groups = kCreateGroups},
    .perform = create,
};

constinit const Verb kSessionList{
    .path = "session list",
    .summary = "List the sessions",
    .description =
        "The sessions of this user, oldest first. Expired ones are removed, unless they hold uncommitted changes: then "
        "they are listed for seven more days, and `diff`, `export`, `commit`, `renew` and `destroy` work on them.",
    .topic = Topic::session,
    .syntax = {.groups = kListGroups},
    .perform = list,
};

constinit const Verb kSessionRenew{
    .path = "session renew",
    .summary = "Give a session more time",
    .description =
        "The session ends DUR from now; each later request moves the end to DUR after it. Brings back a session that "
        "expired with uncommitted changes.",
    .examples = "caisson session renew fix-login 2h",
    .topic = Topic::session,
    .syntax = {.operands = "ID DUR"},
    .perform = renew,
};

constinit const Verb kSessionDestroy{
    .path = "session destroy",
    .summary = "End sessions and remove all their files",
    .description = "Changes that were not committed are lost; a warning says so.",
    .topic = Topic::session,
    .syntax = {.operands = "ID..."},
    .perform = destroy,
};

namespace {
constexpr const Verb* kBelow[] = {
    &kSessionCreate,  &kSessionExec,   &kSessionShell,  &kSessionCheckpoint, &kSessionCheckpoints, &kSessionRestore,
    &kSessionFork,    &kSessionDiff,   &kSessionCommit, &kSessionExport,     &kSessionRead,        &kSessionWrite,
    &kSessionCp,      &kSessionList,   &kSessionInfo,   &kSessionPs,         &kSessionLogs,        &kSessionStop,
    &kSessionNetwork, &kSessionExpose, &kSessionRenew,  &kSessionRebind,     &kSessionDestroy,     &kSessionUncommit};
}

constinit const Verb kSession{
    .path = "session",
    .summary = "Workspaces that last over commands",
    .topic = Topic::session,
    .verbs = kBelow,
};

}  // namespace caisson::cli
