#include "supervise/workspace/exec_config.h"

#include <fcntl.h>
#include <linux/fs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/path_parts.h"
#include "base/text.h"
#include "host/owner_access.h"
#include "host/workspace_scan.h"
#include "policy/rules/protected_files.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

constexpr const char* kInWorkspace = ".caisson-quarantine";

/// Moves `path` of one tree to the same path of another on the same file system. Replaces nothing.
Result<void> move(const sys::RootDir& from, const sys::RootDir& to, const std::string& path) {
  if (auto made = to.makeDirs(directoryOf(path), 0700); !made) return made;
  const auto source = from.enter(directoryOf(path));
  if (!source) return fail(source.error());
  const auto target = to.enter(directoryOf(path));
  if (!target) return fail(target.error());
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto rename = [&] {
    return ::renameat2(source->descriptor(), name.c_str(), target->descriptor(), name.c_str(), RENAME_NOREPLACE) == 0;
  };
  if (rename()) return {};
  int error = errno;
  // A directory that moves to another one must be writable, and so must the one above it; the payload chose the modes.
  if (error == EACCES) {
    const bool changed = host::giveOwnerAccess(from, directoryOf(path));
    if ((host::giveOwnerAccess(from, path) || changed) && rename()) return {};
    error = errno;
  }
  return fail(sysError(Stage::state, "renameat2", path, error));
}

Result<sys::RootDir> makeRoot(const std::string& directory, const std::string& below) {
  auto root = sys::RootDir::open(directory);
  if (!root) return root;
  if (auto made = root->makeDirs(below, 0700); !made) return fail(made.error());
  return root->enter(below);
}

/// Files of the run that were not there before, also links that lead elsewhere now; of a directory and its content only
/// the directory.
std::vector<std::string> newFiles(const plan::GuardedWorkspace& guarded, RunResult& result) {
  const policy::ProtectedFiles files(guarded.patterns);
  const auto scan = host::scanWorkspace(guarded.path, {.secrets = false,
                                                       .protected_files = &files,
                                                       .open_closed = true,
                                                       .max_entries = host::kMaxGuardedEntries,
                                                       .max_time = host::kMaxGuardedTime});
  if (scan.unscanned_count > 0) {
    result.warnings.push_back("not searched for new files that the host would execute: " + scan.unscanned.front() +
                              " and what else the program made too large or unreadable");
  }
  using Protected = plan::WorkspaceScan::Protected;
  std::vector<std::string> found;
  for (const Protected& one : scan.protected_paths) {
    const auto same = [&](const Protected& other) { return other.path == one.path && other.target == one.target; };
    if (std::ranges::none_of(guarded.before, same)) found.push_back(one.path);
  }
  // What only a new link or configuration makes protected stays: the new one is moved away.
  for (const Protected& one : scan.protected_paths) {
    if (one.through.empty() || std::ranges::find(found, one.through) == found.end()) continue;
    std::erase(found, one.path);
  }
  return found;
}

}  // namespace

void quarantineNewFiles(const plan::Plan& plan, RunResult& result) {
  if (!plan.guarded) return;
  const std::vector<std::string> found = newFiles(*plan.guarded, result);
  if (found.empty()) return;
  const auto workspace = sys::RootDir::open(plan.guarded->path);
  if (!workspace) {
    result.warnings.push_back("the host would execute " + joined(found) +
                              ", and the workspace cannot be opened: " + workspace.error().message());
    return;
  }
  const std::string name = "quarantined-files/" + result.sandbox_id;
  auto place = makeRoot(sys::stateHome(), name);
  std::string where = sys::stateHome() + "/" + name;
  std::vector<std::string> moved, left;
  for (const std::string& path : found) {
    Result<void> done = place ? move(*workspace, *place, path) : fail(place.error());
    if (!done && done.error().sys_errno == EXDEV) {
      where = plan.guarded->path + "/" + kInWorkspace + "/" + result.sandbox_id;
      place = makeRoot(plan.guarded->path, std::string(kInWorkspace) + "/" + result.sandbox_id);
      done = place ? move(*workspace, *place, path) : fail(place.error());
    }
    (done ? moved : left).push_back(path);
    result.denials.push_back({"filesystem.workspace.allow_exec_config", path, "create", "the host would execute it"});
  }
  if (!moved.empty()) {
    result.notices.push_back("new files that the host would execute were moved to " + where +
                             "; keep them with --allow-exec-config");
  }
  for (const std::string& path : left) {
    result.warnings.push_back("the host would execute " + path + ", and it could not be moved out of the workspace");
  }
}

}  // namespace caisson::supervise
