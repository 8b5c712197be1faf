#include "session/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "host/facts.h"
#include "host/state_disk.h"
#include "plan/build_sandbox.h"
#include "plan/environment.h"
#include "session/session_policy.h"
#include "session/store/workspace_root.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

using sys::Fd;

constexpr int kKillTimeoutMs = 10'000;

/// Sets the plan's overlay to the session's layers.
Result<void> useLayers(const Metadata& metadata, plan::Plan& plan) {
  for (plan::Step& step : plan.steps) {
    if (auto* root = std::get_if<plan::MountRoot>(&step)) root->kept = true;
    auto* overlay = std::get_if<plan::MountOverlay>(&step);
    if (overlay == nullptr) continue;
    overlay->frozen = metadata.frozen;
    overlay->upper = metadata.upper;
    const std::string planned = plan.layers["workspace"];
    const std::size_t shown = planned.rfind(", with ");  // secret files that are shown stay on record
    plan.layers["workspace"] = metadata.workspace.empty()
                                   ? "overlay of nothing, changes are kept in the session"
                                   : "overlay of " + metadata.workspace + ", changes are kept in the session";
    if (shown != std::string::npos) plan.layers["workspace"] += planned.substr(shown);
    return {};
  }
  return fail(plainError(Stage::plan, "session", "workspace", "the policy gives the session no overlay",
                         "use a workspace of mode overlay or none, and level full or process"));
}

/// The directory that stands for the workspace of a session without one.
Result<sys::RootDir> openEmpty(const sys::RootDir& directory) {
  auto empty = directory.openFile(kEmptyDirectory, {.flags = O_PATH, .types = {sys::FileType::directory}});
  if (!empty) return fail(empty.error());
  auto path = sys::canonicalPath(empty->get());
  if (!path) return fail(path.error());
  return sys::RootDir::adopt(std::move(*empty), {.known_as = *path});
}

Error stillAlive() {
  return plainError(Stage::state, "kill", "session", "its processes survive SIGKILL",
                    "they hang in the kernel; see its log");
}

}  // namespace

Result<void> checkFeatures(const std::string& path, int directory) {
  const std::string why = host::whyNoOverlay(directory);
  if (why.empty()) return {};
  return fail(plainError(Stage::state, "session", path, why,
                         "set CAISSON_HOME to a directory on a local disk (ext4, xfs, btrfs)"));
}

Result<void> Planner::usePolicy(const sys::RootDir& directory, const Metadata& metadata) {
  common_.reset();
  policy = metadata.policy;
  policy.filesystem.overlay_store = policy::OverlayStore::disk;
  policy.filesystem.workspace.mode = policy::WorkspaceMode::overlay;
  policy.filesystem.workspace.path = metadata.workspace;
  if (!metadata.workspace.empty()) return {};
  auto empty = openEmpty(directory);
  if (!empty) return fail(empty.error());
  policy.filesystem.workspace.path = empty->knownAs();
  policy.filesystem.workspace.same_path = false;  // that directory is caisson's own
  for (policy::Tmpfs& tmpfs : policy.filesystem.tmpfs)
    if (tmpfs.cache == "workspace") tmpfs.cache.clear();  // the session's own, removed with it
  return {};
}

Result<Planner> Planner::observe(const sys::RootDir& directory, const Metadata& metadata) {
  Planner planner;
  if (auto used = planner.usePolicy(directory, metadata); !used) return fail(used.error());
  auto workspace = metadata.workspace.empty() ? openEmpty(directory) : openRealDirectory(metadata);
  if (!workspace) return fail(workspace.error());
  planner.facts = host::collectFacts(planner.policy, {.workspace = &*workspace, .will_run = true});
  if (planner.facts.may_map_other_ids) planner.facts.payload_id = metadata.payload_id;
  return planner;
}

Result<plan::Plan> Planner::plan(const Metadata& metadata, const std::optional<plan::Command>& command) const {
  if (auto checked = checkPolicy(policy); !checked) return fail(checked.error());
  auto plan = command ? plan::build(policy, facts, *command) : plan::buildSandbox(policy, facts, false);
  if (!plan) return plan;
  // Without a cgroup RLIMIT_NPROC limits tasks. The pid 1 of a session has two threads, that of a run one: allow one
  // more.
  for (plan::ResourceLimit& limit : plan->rlimits) {
    if (limit.resource == RLIMIT_NPROC && !plan->cgroup) ++limit.value;
  }
  if (auto used = useLayers(metadata, *plan); !used) return fail(used.error());
  return plan;
}

Result<plan::Plan> Planner::planCommand(const Metadata& metadata, const plan::Command& command) {
  if (!common_ || common_is_interactive_ != command.interactive) {
    auto whole = plan(metadata, command);
    if (!whole) return whole;
    whole->steps.clear();
    whole->landlock.rules.clear();
    common_ = std::move(*whole);
    common_is_interactive_ = command.interactive;
    return *common_;
  }
  plan::Plan plan = *common_;
  if (auto set = plan::setCommand(policy, facts, command, plan); !set) return fail(set.error());
  plan.environment = plan::planEnvironment(policy, facts, plan, command.interactive);
  return plan;
}

bool isAlive(const sys::RootDir& directory) { return isLocked(directory, kAliveFile); }

bool isInUse(const sys::RootDir& directory, std::chrono::milliseconds patience) {
  const auto file = directory.openFile(kAliveFile, {.flags = O_RDWR});
  if (!file) return false;
  return !sys::lockFile(file->get(), sys::LockKind::exclusive, patience, kAliveFile);
}

bool isSupervised(const sys::RootDir& directory) {
  if (isAlive(directory)) return true;
  const auto record = readInitRecord(directory);
  return record && record->supervisor.isAlive();
}

Result<Fd> openInSandbox(pid_t init, const std::string& path) {
  char root_path[64];
  std::snprintf(root_path, sizeof(root_path), "/proc/%d/root", init);
  const Fd root(::open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail(sysError(Stage::state, "open", "the sandbox's root", errno));
  auto tree = sys::RootDir::adopt(Fd(::fcntl(root.get(), F_DUPFD_CLOEXEC, 3)), {.known_as = "/"});
  if (!tree) return fail(tree.error());
  return tree->openFile(path, {.flags = O_PATH, .types = {sys::FileType::directory}});
}

Result<void> killSandbox(const sys::RootDir& directory) {
  const auto record = readInitRecord(directory);
  if (!record) {
    // A command in the landlock tier, whose caller may just have been told to end it.
    if (isInUse(directory, std::chrono::milliseconds(kKillTimeoutMs))) {
      return fail(sysError(Stage::state, "kill", "session", EBUSY,
                           "another process runs a command in the session: end that process first"));
    }
    (void)directory.remove("init.json");
    return {};
  }
  // The supervisor first: otherwise it would report that pid 1 was killed from outside.
  for (const ProcessId& process : {record->supervisor, record->init}) {
    const long opened = process.pid > 0 ? sys::raw(SYS_pidfd_open, process.pid, 0) : -ESRCH;
    if (opened < 0) continue;
    const Fd pidfd(static_cast<int>(opened));
    if (!process.isAlive()) continue;  // the pid was reused
    sys::raw(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
    pollfd wait{pidfd.get(), POLLIN, 0};
    if (::poll(&wait, 1, kKillTimeoutMs) == 0) return fail(stillAlive());
  }
  for (int waited = 0; waited < kKillTimeoutMs && isAlive(directory); ++waited) ::usleep(1000);
  if (isAlive(directory)) return fail(stillAlive());
  return directory.remove("init.json");
}

}  // namespace caisson::session
