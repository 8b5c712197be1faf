#include "supervise/workspace/exec_config.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/path_text.h"
#include "base/text.h"
#include "host/workspace_scan.h"
#include "policy/rules/protected_files.h"
#include "supervise/workspace/file_quarantine.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

/// Some paths of the payload's, for a notice.
std::string somePaths(const std::set<std::string>& paths) {
  constexpr std::size_t kMaxListed = 10;
  std::string text;
  std::size_t count = 0;
  for (const std::string& path : paths) {
    if (count == kMaxListed) return text + " and " + std::to_string(paths.size() - count) + " more";
    text += (count++ == 0 ? "" : ", ") + displayedPath(path);
  }
  return text;
}

/// Orders a directory directly before what is in it.
bool comesBefore(const std::string& one, const std::string& other) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return std::ranges::lexicographical_compare(one, other, {}, rank, rank);
}

/// Without what is in a directory that is in the list, too.
std::vector<std::string> outermost(std::vector<std::string> paths) {
  std::ranges::sort(paths, comesBefore);
  std::vector<std::string> result;
  for (std::string& path : paths) {
    const bool inside = !result.empty() && path.starts_with(result.back()) &&
                        (path.size() == result.back().size() || path[result.back().size()] == '/');
    if (!inside) result.push_back(std::move(path));
  }
  return result;
}

class NewFiles {
 public:
  NewFiles(const plan::GuardedWorkspace& guarded, const sys::RootDir& workspace, RunResult& result)
      : guarded_(guarded),
        files_(guarded.patterns),
        quarantine_(workspace, guarded.path, result.sandbox_id),
        result_(result) {
    for (const auto& one : guarded.before) before_.emplace(one.path, one.target);
  }

  void moveAll() {
    const bool complete = repeatUntilZero([this] { return moveFound(search()); });
    report(complete);
  }

 private:
  /// Files of the run that were not there before, also links that lead elsewhere now.
  std::vector<std::string> search() {
    const auto scan = host::scanWorkspace(guarded_.path, {.secrets = false,
                                                          .protected_files = &files_,
                                                          .open_closed = true,
                                                          .skipped = quarantine_.inWorkspace(),
                                                          .max_entries = host::kMaxGuardedEntries,
                                                          .max_time = host::kMaxGuardedTime,
                                                          .max_cpu_time = host::kMaxGuardedCpuTime});
    unscanned_ = scan.unscanned_count > 0 ? scan.unscanned.front() : "";
    std::set<std::string> found;
    for (const auto& one : scan.protected_paths) {
      if (!before_.contains({one.path, one.target})) found.insert(one.path);
    }
    // What a new link or configuration makes protected stays until that is moved away: it may be a file of the host's.
    // If something old makes it protected, too, the next search finds it again.
    std::vector<std::string> movable;
    for (const auto& one : scan.protected_paths) {
      const bool is_new = found.contains(one.path) && !left_.contains(one.path);
      if (is_new && (one.through.empty() || !found.contains(one.through))) movable.push_back(one.path);
    }
    return outermost(std::move(movable));
  }

  /// Returns how many were moved.
  std::size_t moveFound(const std::vector<std::string>& found) {
    constexpr const char* kRule = "filesystem.workspace.allow_exec_config";
    std::size_t moved = 0;
    for (const std::string& path : found) {
      if (quarantine_.move(path)) {
        ++moved;
        result_.denials.push_back({kRule, path, "create", "the host would execute it"});
      } else {
        left_.insert(path);
        result_.denials.push_back(
            {kRule, path, std::string(kNotMoved), "it is still there, and the host would execute it"});
      }
    }
    return moved;
  }

  void report(bool complete) {
    if (!quarantine_.directories().empty()) {
      result_.notices.push_back("new files that the host would execute were moved to " +
                                joined(quarantine_.directories(), " and ") + "; keep them with --allow-exec-config");
    }
    if (!left_.empty()) {
      result_.notices.push_back("still in the workspace, since they could not be moved: " + somePaths(left_) +
                                "; the host would execute them, so remove them");
    }
    if (!unscanned_.empty()) {
      result_.notices.push_back("not searched for new files that the host would execute: " + displayedPath(unscanned_) +
                                " and what else the program made too large or unreadable; they may still be there");
    }
    if (!complete) {
      result_.notices.push_back("the last of " + std::to_string(kMaxSearches) +
                                " searches still found new files that the host would execute; more may be there");
    }
  }

  const plan::GuardedWorkspace& guarded_;
  const policy::ProtectedFiles files_;
  FileQuarantine quarantine_;
  RunResult& result_;
  std::set<std::pair<std::string, std::string>> before_;  ///< paths and their targets, if they are links
  std::set<std::string> left_;                            ///< could not be moved
  std::string unscanned_;                                 ///< what the last search left out; "": nothing
};

}  // namespace

bool repeatUntilZero(const std::function<std::size_t()>& round) {
  for (int i = 0; i < kMaxSearches; ++i) {
    if (round() == 0) return true;
  }
  return false;
}

void quarantineNewFiles(const plan::Plan& plan, RunResult& result) {
  if (!plan.guarded) return;
  const auto workspace = sys::RootDir::open(plan.guarded->path);
  if (!workspace) {
    result.notices.push_back("not searched for new files that the host would execute: " + workspace.error().message());
    return;
  }
  NewFiles(*plan.guarded, *workspace, result).moveAll();
}

}  // namespace caisson::supervise
