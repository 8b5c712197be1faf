#include "session/tier/tier_command.h"

#include <algorithm>
#include <cerrno>

#include "host/facts.h"
#include "plan/filesystem.h"
#include "plan/landlock_tier.h"
#include "plan/nested_paths.h"
#include "plan/runtime.h"
#include "plan/workspace.h"
#include "session/sandbox.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/disk_directories.h"
#include "supervise/run_record.h"
#include "supervise/supervise.h"
#include "supervise/workspace/changes.h"
#include "supervise/workspace/exec_config.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"

namespace caisson::session {
namespace {

constexpr const char* kScratch = "scratch";

struct TierPlan {
  policy::Policy policy;
  plan::Plan plan;
  sys::CgroupBase cgroups;
};

/// A directory of the request in the workspace; /workspace is the workspace here too.
std::string directoryOf(const ExecRequest& request) {
  const std::string& path = request.working_directory;
  if (path == plan::kWorkspace) return ".";
  const std::string prefix = std::string(plan::kWorkspace) + "/";
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

policy::Policy policyOf(const Metadata& metadata, const std::string& workspace, const ExecRequest& request) {
  policy::Policy policy = metadata.policy;
  policy.filesystem.workspace.mode = policy::WorkspaceMode::rw;
  policy.filesystem.workspace.path = workspace;
  if (!writesDirectly(metadata)) {  // secrets are not in the copy, and a commit holds back what the host would execute
    policy.filesystem.workspace.show_secrets = true;
    policy.filesystem.workspace.allow_exec_config = true;
  }
  for (const auto& [name, value] : request.environment) policy.environment.set[name] = value;
  if (!request.working_directory.empty()) policy.working_directory = directoryOf(request);
  if (request.timeout_seconds) policy.resources.wall_seconds = *request.timeout_seconds;
  return policy;
}

/// Describes the copy instead of a workspace that is written directly, and lets its cache be that of the real one.
void describeCopy(const Metadata& metadata, const std::string& copy, plan::Plan& plan) {
  std::erase(plan.warnings, plan::kNoRollback);
  std::erase_if(plan.warnings, [](const std::string& text) { return text.contains("--allow-exec-config"); });
  plan.layers["workspace"] = metadata.workspace.empty()
                                 ? "a directory of the session"
                                 : "copy of " + metadata.workspace + ", changes are kept in the session";
  for (plan::Step& step : plan.steps) {
    auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory != nullptr && directory->cache == plan::workspaceCache(metadata.policy.use, copy)) {
      directory->cache =
          metadata.workspace.empty() ? "" : plan::workspaceCache(metadata.policy.use, metadata.workspace);
    }
  }
}

Result<TierPlan> planCommand(const SessionPaths& paths, const Metadata& metadata, const ExecRequest& request,
                             bool will_run) {
  auto workspace = openTierWorkspace(paths, metadata);
  if (!workspace) return fail(workspace.error());
  const auto path = sys::canonicalPath(workspace->descriptor());
  if (!path) return fail(path.error());
  TierPlan made{.policy = policyOf(metadata, *path, request), .plan = {}, .cgroups = {}};
  if (auto checked = plan::refuseRuntime(made.policy, "a session"); !checked) return fail(checked.error());
  plan::HostFacts facts =
      host::collectFacts(made.policy, {.found = &made.cgroups, .workspace = &*workspace, .will_run = will_run});
  if (facts.may_map_other_ids) facts.payload_id = metadata.payload_id;
  if (!writesDirectly(metadata) && !metadata.workspace.empty()) {  // a rule holds for the copy, too
    if (auto checked = plan::checkNestingForLandlock(facts, metadata.workspace, true); !checked)
      return fail(checked.error());
  }
  auto plan = plan::build(made.policy, facts, {request.command, request.interactive, false});
  if (!plan) return fail(plan.error());
  made.plan = std::move(*plan);
  if (!writesDirectly(metadata)) describeCopy(metadata, *path, made.plan);
  return made;
}

/// The private HOME, TMPDIR and cache, which the session keeps.
Result<supervise::DiskDirectories> makeDirectories(const SessionPaths& paths, const Metadata& metadata,
                                                   const plan::Plan& plan) {
  auto files = openTierFiles(paths, metadata);
  if (!files) return fail(files.error());
  if (auto made = files->makeDirs(kScratch, plan.identity.change_user ? 0711 : 0700); !made) return fail(made.error());
  auto scratch = files->enter(kScratch);
  if (!scratch) return fail(scratch.error());
  const auto path = sys::canonicalPath(scratch->descriptor());
  if (!path) return fail(path.error());
  return supervise::makeDiskDirectories(*scratch, *path, plan);
}

Request requestOf(const SessionPaths& paths, const policy::Policy& policy, const ExecRequest& request) {
  Request run{.policy = Policy(policy)};
  run.command = request.command;
  run.out = request.out;
  run.err = request.err;
  run.relay_stdin = request.relay_stdin;
  run.input = request.input;
  run.interactive = request.interactive;
  run.forward_signals = request.forward_signals;
  run.cancel_descriptor = request.cancel_descriptor;
  run.program = paths.program();
  return run;
}

}  // namespace

Result<sys::Fd> useTierSession(const sys::RootDir& directory) {
  auto file = directory.openFile(kAliveFile, {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!file) return file;
  const auto locked = sys::lockFile(file->get(), sys::LockKind::shared, kUntilAskersAreGone, kAliveFile);
  return locked ? std::move(file) : fail(locked.error());
}

Result<RunResult> runInTier(const SessionPaths& paths, const Metadata& metadata, const ExecRequest& request) {
  const std::vector<std::string> notices = supervise::finishKilledRuns();
  auto planned = planCommand(paths, metadata, request, true);
  if (!planned) {
    if (!supervise::isCommandRefusal(planned.error())) return fail(planned.error());
    RunResult result = supervise::refusedResult(planned.error(), metadata.id);
    supervise::recordRefusal(requestOf(paths, metadata.policy, request), result);
    return result;
  }
  auto directories = makeDirectories(paths, metadata, planned->plan);
  if (!directories) return fail(directories.error());
  supervise::SuperviseOptions options{.session = metadata.id, .directories = &*directories};
  options.output_limit = request.output_limit;
  if (request.on_output) {
    options.on_output = [&](int stream, std::string_view piece) {
      request.on_output(stream == 1 ? OutputStreamKind::out : OutputStreamKind::err, piece);
    };
  }
  planned->plan.notices.insert(planned->plan.notices.begin(), notices.begin(), notices.end());
  RunResult result = supervise::supervise(planned->plan, requestOf(paths, planned->policy, request),
                                          std::move(planned->cgroups), options);
  supervise::explainMissingNetwork(metadata.policy.network.mode, request.command, metadata.id, result);
  return result;
}

Result<std::vector<std::string>> checkTierSession(const SessionPaths& paths, const Metadata& metadata) {
  auto planned = planCommand(paths, metadata, {.command = {"true"}}, false);
  if (planned) return std::move(planned->plan.warnings);
  if (!supervise::isCommandRefusal(planned.error())) return fail(planned.error());
  return std::vector<std::string>{std::string(plan::kLandlockTierLosses)};
}

Error notInTier(std::string_view call, const Metadata& metadata, std::string_view why, std::string_view hint) {
  return plainError(Stage::state, call, metadata.id, std::string(why) + ", which the landlock tier does without", hint);
}

}  // namespace caisson::session
