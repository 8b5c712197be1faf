#include "supervise/workspace/exec_config.h"

#include <algorithm>

#include "base/path_text.h"
#include "base/text.h"
#include "host/workspace_scan.h"
#include "policy/rules/protected_files.h"
#include "supervise/workspace/file_quarantine.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

/// Some paths of the payload's, for a notice.
std::string somePaths(const std::vector<std::string>& paths) {
  constexpr std::size_t kMaxListed = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(paths.size(), kMaxListed); ++i) {
    text += (i == 0 ? "" : ", ") + displayedPath(paths[i]);
  }
  return paths.size() > kMaxListed ? text + " and " + std::to_string(paths.size() - kMaxListed) + " more" : text;
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
    result.notices.push_back(
        "not searched for new files that the host would execute: " + displayedPath(scan.unscanned.front()) +
        " and what else the program made too large or unreadable; they may still be there");
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
    result.notices.push_back("the host would execute " + somePaths(found) +
                             ", and the workspace cannot be opened: " + workspace.error().message());
    return;
  }
  FileQuarantine quarantine(*workspace, plan.guarded->path, result.sandbox_id);
  std::vector<std::string> left;
  constexpr const char* kRule = "filesystem.workspace.allow_exec_config";
  for (const std::string& path : found) {
    if (quarantine.move(path)) {
      result.denials.push_back({kRule, path, "create", "the host would execute it"});
    } else {
      left.push_back(path);
      result.denials.push_back(
          {kRule, path, std::string(kNotMoved), "it is still there, and the host would execute it"});
    }
  }
  if (!quarantine.directories().empty()) {
    result.notices.push_back("new files that the host would execute were moved to " +
                             joined(quarantine.directories(), " and ") + "; keep them with --allow-exec-config");
  }
  if (!left.empty()) {
    result.notices.push_back("still in the workspace, since they could not be moved: " + somePaths(left) +
                             "; the host would execute them, so remove them");
  }
}

}  // namespace caisson::supervise
