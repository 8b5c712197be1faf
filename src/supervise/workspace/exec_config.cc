#include "supervise/workspace/exec_config.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/path_text.h"
#include "base/text.h"
#include "host/covered.h"
#include "host/enclosing_search.h"
#include "host/shared_files.h"
#include "host/tree_writers.h"
#include "host/written_trees.h"
#include "plan/workspace.h"
#include "policy/rules/protected_files.h"
#include "supervise/sandbox_id.h"
#include "supervise/workspace/file_quarantine.h"
#include "supervise/workspace/reported_changes.h"
#include "sys/descriptor_path.h"
#include "sys/file_identity.h"
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
  NewFiles(const plan::GuardedTree& guarded, const std::vector<host::ProtectedFile>& before,
           const sys::RootDir& workspace, RunResult& result)
      : guarded_(guarded),
        path_(workspace.knownAs()),
        files_(guarded.patterns, guarded.path),
        quarantine_(workspace, path_, result.sandbox_id),
        result_(result) {
    for (const auto& one : before) {
      if (one.path.ends_with('/')) {
        covered_.emplace_back(one.path.substr(0, one.path.size() - 1), one.target);
      } else {
        before_.emplace(one.path, one.target);
      }
    }
  }

  void moveAll() {
    const bool complete = repeatUntilZero([this] { return moveFound(search()); });
    reportReplaced();
    report(complete);
  }

 private:
  /// The directories that the program could not write in. Not so those that another sandbox put in their place: the
  /// mount over a directory moves with it.
  [[nodiscard]] std::set<std::string> stillCovered() const {
    std::set<std::string> paths;
    for (const auto& [path, identity] : covered_) {
      if (host::isStillCovered(guarded_.opened->get(), path, identity)) paths.insert(path);
    }
    return paths;
  }

  /// Files of the run that were not there before, also links that lead elsewhere now.
  std::vector<std::string> search() {
    auto root = sys::RootDir::share(guarded_.opened->get(), {.known_as = path_});
    std::set<std::string> skipped = stillCovered();
    if (!quarantine_.inWorkspace().empty()) skipped.insert(quarantine_.inWorkspace());
    const auto scan =
        root ? host::searchEnclosed(*std::move(root), path_,
                                    {.secrets = false,
                                     .protected_files = &files_,
                                     .open_closed = true,
                                     .around = guarded_.around,
                                     .skipped = skipped,
                                     .enter_mounts = true,
                                     .index = path_ == guarded_.path ? std::optional(guarded_.patterns) : std::nullopt})
             : plan::WorkspaceScan{.unscanned = {"."}, .unscanned_count = 1, .exhausted = true};
    unscanned_ = scan.unscanned_count > 0 ? scan.unscanned.front()
                 : scan.covered.empty()   ? ""
                                          : scan.covered.front().path;
    std::set<std::string> found;
    for (const auto& one : scan.protected_paths) {
      if (!before_.contains({one.path, one.target})) found.insert(one.path);
    }
    // What a new link or configuration makes protected stays until that is moved away: it may be a file of the host's.
    // If something old makes it protected, too, the next search finds it again.
    std::vector<std::string> movable;
    for (const auto& one : scan.protected_paths) {
      // The whole tree is never moved, only what makes it one that the host would execute.
      const bool is_new = found.contains(one.path) && !left_.contains(one.path) && one.path != plan::kWholeWorkspace;
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
        result_.denials.push_back({kRule, guarded_.prefix + path, "create", "the host would execute it"});
      } else {
        left_.insert(path);
        result_.denials.push_back({kRule, guarded_.prefix + path, std::string(kNotMoved),
                                   "it is still there, and the host would execute it"});
      }
    }
    return moved;
  }

  /// A file or directory of the host's that has another's place since loses its read-only mount.
  void reportReplaced() {
    std::set<std::string> replaced;
    const auto root = sys::RootDir::share(guarded_.opened->get(), {.known_as = path_});
    for (const auto& one : guarded_.before) {
      if (one.stamp.inode == 0 || left_.contains(one.path)) continue;
      const plan::ObjectStamp now = root ? host::stampOf(*root, one.path) : plan::ObjectStamp();
      if (now.inode != 0 && now != one.stamp) replaced.insert(one.path);
    }
    if (replaced.empty()) return;
    result_.notices.push_back("replaced on the host while the program ran, which could write to them from then on: " +
                              somePaths(replaced) + (guarded_.prefix.empty() ? "" : " in " + displayedPath(path_)) +
                              "; the host would execute them, so look at them");
  }

  void report(bool complete) {
    if (!quarantine_.directories().empty()) {
      result_.notices.push_back("new files that the host would execute were moved to " +
                                joined(quarantine_.directories(), " and ") + "; keep them with --allow-exec-config");
    }
    if (!left_.empty()) {
      result_.notices.push_back("still in " + (guarded_.prefix.empty() ? "the workspace" : displayedPath(path_)) +
                                ", since they could not be moved: " + somePaths(left_) +
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

  const plan::GuardedTree& guarded_;
  const std::string path_;  ///< of the workspace now: a program that may write above it can have moved it
  const policy::ProtectedFiles files_;
  FileQuarantine quarantine_;
  RunResult& result_;
  std::set<std::pair<std::string, std::string>> before_;      ///< paths and their targets, if they are links
  std::vector<std::pair<std::string, std::string>> covered_;  ///< directories that were covered, and their identities
  std::set<std::string> left_;                                ///< could not be moved
  std::string unscanned_;                                     ///< what the last search left out; "": nothing
};

void quarantineIn(const plan::GuardedTree& tree, RunResult& result) {
  const auto refuse = [&](const Error& error) {
    result.notices.push_back("not searched for new files that the host would execute: " + error.message());
  };
  // The directory that the program wrote to, also if it has another name now and something else has its old one.
  const auto path = sys::canonicalPath(tree.opened->get());
  const auto root = sys::RootDir::share(tree.opened->get(), {.known_as = path.value_or(tree.path)});
  if (!root) return refuse(root.error());
  host::TreeWriter* const writer = tree.writer.get();
  const auto before = writer != nullptr ? writer->before() : Result<std::vector<host::ProtectedFile>>(tree.before);
  if (!before) return refuse(before.error());
  NewFiles(tree, *before, *root, result).moveAll();
  reportChanges(tree, *root, root->knownAs(), result.notices);
  if (writer != nullptr) writer->end();
}

}  // namespace

bool repeatUntilZero(const std::function<std::size_t()>& round) {
  for (int i = 0; i < kMaxSearches; ++i) {
    if (round() == 0) return true;
  }
  return false;
}

Result<void> storeStateBefore(const plan::Plan& plan) {
  if (auto recorded = host::recordWrittenTrees(plan); !recorded) return recorded;
  for (const plan::GuardedTree& tree : plan.guarded) {
    if (!tree.writer) continue;
    if (auto stored = tree.writer->store(tree); !stored) return stored;
  }
  return {};
}

Result<void> storeInit(const plan::Plan& plan, pid_t init) {
  for (const plan::GuardedTree& tree : plan.guarded) {
    if (!tree.writer) continue;
    if (auto stored = tree.writer->setInit(init); !stored) return stored;
  }
  return {};
}

void forgetStateBefore(const plan::Plan& plan) {
  for (const plan::GuardedTree& tree : plan.guarded) {
    if (tree.writer) tree.writer->end();
  }
}

void quarantineNewFiles(const plan::Plan& plan, RunResult& result) {
  for (const plan::GuardedTree& tree : plan.guarded) quarantineIn(tree, result);
}

std::vector<std::string> finishKilledRuns() {
  std::vector<std::string> notices;
  for (const host::KilledWriter& killed : host::killedWriters()) {
    auto opened = sys::openKnown(killed.path, killed.tree, "remove new files there that the host would execute");
    if (!opened) {
      notices.push_back("a run or session that ended may have left files that the host would execute: " +
                        opened.error().message());
      if (opened.error().sys_errno == ENOENT) host::forgetWriter(killed);
      continue;
    }
    const plan::GuardedTree guarded{.path = killed.path,
                                    .opened = std::make_shared<const sys::Fd>(std::move(*opened)),
                                    .patterns = killed.patterns,
                                    .before = killed.before,
                                    .called = killed.called,
                                    .git_directories = killed.git_directories};
    const auto workspace = sys::RootDir::share(guarded.opened->get(), {.known_as = killed.path});
    if (!workspace) continue;
    RunResult result;
    result.sandbox_id = newSandboxId();
    NewFiles(guarded, killed.before, *workspace, result).moveAll();
    reportChanges(guarded, *workspace, killed.path, result.notices);
    std::set<std::string> paths;
    for (const Denial& one : result.denials) paths.insert(one.object);
    if (!paths.empty()) {
      notices.push_back("a run that was killed, or a session, left files in " + displayedPath(killed.path) +
                        " that the host would execute: " + somePaths(paths));
    }
    std::ranges::move(result.notices, std::back_inserter(notices));
    host::forgetWriter(killed);
  }
  return notices;
}

}  // namespace caisson::supervise
