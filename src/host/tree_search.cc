#include "host/tree_search.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "host/covered.h"
#include "host/enclosing_search.h"
#include "host/shared_files.h"
#include "host/tree_writers.h"
#include "plan/named_paths.h"
#include "plan/nested_paths.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"
#include "sys/root_dir.h"

namespace caisson::host {
namespace {

using plan::HostFacts;
using plan::HostPath;

/// What is looked for in every tree.
ScanOptions commonOptions(const policy::Workspace& rules, const CollectOptions& collect) {
  ScanOptions options;
  options.progress = collect.progress;
  options.index = rules.protected_files;
  options.keep_index = collect.keep_index || collect.will_run;
  options.around = rules.around;
  return options;
}

/// Searches an open directory, with `protect` also for files that the host would execute.
plan::WorkspaceScan search(const policy::Workspace& rules, const HostPath& directory, bool protect,
                           ScanOptions options) {
  if (!options.secrets && !protect && options.denied_paths.empty()) return {};
  std::optional<policy::ProtectedFiles> files;  // building its table takes longer than a small scan
  if (protect) {                                // files not found here stay writable
    options.protected_files = &files.emplace(rules.protected_files, directory.path);
  }
  auto root = sys::RootDir::share(directory.opened->get(), {.known_as = directory.path});
  if (!root) return {.covered = {{".", root.error().message()}}, .exhausted = true};
  plan::WorkspaceScan found = searchEnclosed(*std::move(root), directory.path, options);
  if (protect) {
    root = sys::RootDir::share(directory.opened->get(), {.known_as = directory.path});
    if (root) findSharedFiles(*root, found);
    identifyCovered(directory.opened->get(), found.covered);
  }
  return found;
}

/// What a search went by, for the writers beside this one.
TreeJudgement judgementOf(const policy::Workspace& rules, const plan::WorkspaceScan& scan) {
  TreeJudgement judgement{.patterns = rules.protected_files, .around = scan.judged_from, .programs = {}};
  for (const policy::NamedProgram& program : scan.programs) judgement.programs.push_back(program.path);
  return judgement;
}

/// Registers the writer of a tree, before it is searched.
std::shared_ptr<TreeWriter> registerWriter(HostPath& tree) {
  auto writer = TreeWriter::begin(tree.opened->get(), tree.path);
  if (writer) return *std::move(writer);
  const Error& error = writer.error();
  tree.sys_errno = error.sys_errno != 0 ? error.sys_errno : EIO;
  tree.why_not = "the sandboxes that write there cannot be recorded: " + error.message();
  tree.remedy = "do not write there directly, or set CAISSON_HOME to a directory you can write";
  return nullptr;
}

/// The denied paths of a tree, relative to it; also where they lead through links. Of the workspace, those that exist.
std::vector<std::string> deniedIn(const policy::Policy& policy, const HostFacts& facts, const std::string& tree,
                                  bool workspace) {
  std::vector<std::string> denied;
  if (workspace) denied = facts.denied_matches;
  const auto add = [&](const std::string& path) {
    if (path.size() > tree.size() && plan::below(path, tree)) denied.push_back(path.substr(tree.size() + 1));
  };
  for (const std::string& entry : policy.filesystem.denied) {
    if (!workspace) add(policy::normalPath(entry));
  }
  for (const auto& [entry, real] : facts.denied_real) add(real);
  return denied;
}

void searchWorkspace(const policy::Policy& policy, const CollectOptions& collect, HostFacts& facts) {
  const policy::Workspace& rules = policy.filesystem.workspace;
  const bool direct = rules.mode == policy::WorkspaceMode::rw;
  const bool written = direct || std::ranges::any_of(facts.read_write, [&](const HostPath& named) {
                         return plan::below(named.path, facts.workspace.path);  // a part that is written directly
                       });
  const bool protect = written && !rules.allow_exec_config;
  if (collect.will_run && direct && protect) facts.writer = registerWriter(facts.workspace);
  if (rules.mode == policy::WorkspaceMode::ro) facts.mounts_below = hasMountsBelow(facts.workspace.path);
  ScanOptions options = commonOptions(rules, collect);
  options.secrets = !rules.show_secrets;
  options.hold_links = written;
  // An overlay shows what lies below a mount, which cannot be searched.
  options.enter_mounts = direct || facts.mounts_below;
  options.shown = plan::shownFiles(rules, facts.workspace.path);
  options.denied_paths = deniedIn(policy, facts, facts.workspace.path, true);
  facts.scan = search(rules, facts.workspace, protect, options);
  if (!facts.writer) return;
  facts.writer->setJudgement(judgementOf(rules, facts.scan));
  facts.writer->dropNew(facts.scan.protected_paths);
}

/// Other shown trees in this one, relative to it: each is searched for itself.
std::set<std::string> treesIn(const std::string& tree, const HostFacts& facts, bool workspace) {
  std::set<std::string> names;
  const auto add = [&](const HostPath& other) {
    if (other.directory && other.path != tree && plan::below(other.path, tree))
      names.insert(other.path.substr(tree.size() + 1));
  };
  for (const plan::PathRule& rule : plan::pathRules(facts)) add(*rule.path);
  if (workspace) add(facts.workspace);
  return names;
}

/// A part of the workspace is judged from that.
std::string aroundNamed(const policy::Workspace& rules, const HostFacts& facts, const std::string& tree) {
  const bool part = !facts.workspace.path.empty() && plan::below(tree, facts.workspace.path);
  return part && rules.around.empty() ? facts.workspace.path : rules.around;
}

/// Whether the search of the workspace left out the directory that `path` is or lies in.
bool isCovered(const HostFacts& facts, const std::string& path) {
  return std::ranges::any_of(facts.scan.covered, [&](const plan::WorkspaceScan::Covered& one) {
    return plan::below(path, facts.workspace.path + "/" + one.path);
  });
}

/// Adds to `found` what the host would execute in parts of the tree that its search left out. The check after the run
/// looks at all of it, since the program can make other names for their place.
void addApart(const policy::Workspace& rules, const HostPath& tree, ScanOptions options, plan::WorkspaceScan& found) {
  options.secrets = false;
  options.skipped.clear();
  plan::WorkspaceScan whole = search(rules, tree, true, options);
  using Key = std::pair<std::string, std::string>;
  std::set<Key> known;
  for (const auto& one : found.protected_paths) known.emplace(one.path, one.target);
  for (auto& one : whole.protected_paths) {
    one.stamp = {};
    if (!known.contains({one.path, one.target})) found.protected_apart.push_back(std::move(one));
  }
  for (const auto& one : whole.covered) {
    if (!one.identity.empty()) found.protected_apart.push_back({.path = one.path + "/", .target = one.identity});
  }
  if (found.unscanned_count > 0) return;
  found.unscanned = std::move(whole.unscanned);
  found.unscanned_count = whole.unscanned_count;
}

/// Searches one named tree. A part of the workspace was searched with that, unless it is covered there, but has its own
/// writers.
void searchNamed(const policy::Policy& policy, const CollectOptions& collect, bool workspace, HostPath& tree,
                 bool writable, HostFacts& facts) {
  const policy::Workspace& rules = policy.filesystem.workspace;
  const bool part = workspace && plan::below(tree.path, facts.workspace.path);
  const bool guarded_with_it = part && rules.mode == policy::WorkspaceMode::rw;
  const bool protect = writable && !rules.allow_exec_config && !guarded_with_it;
  ScanOptions options = commonOptions(rules, collect);
  const bool searched = part && !isCovered(facts, tree.path);
  options.secrets = !rules.show_secrets && !searched && !plan::isNamedSecret(facts, tree.path) &&
                    !(plan::isShownAnyway(policy, facts, tree.path) && !hasMountsBelow(tree.path));
  options.denied_paths = deniedIn(policy, facts, tree.path, false);
  if (!options.secrets && !protect && options.denied_paths.empty()) return;
  options.hold_links = writable;
  options.around = aroundNamed(rules, facts, tree.path);
  options.enter_mounts = true;
  options.shown = plan::shownFilesAt(rules, tree.path);
  options.skipped = treesIn(tree.path, facts, workspace);
  plan::NamedTree& found = facts.named_trees[tree.path];
  if (collect.will_run && protect) found.writer = registerWriter(tree);
  if (tree.sys_errno != 0) return;
  found.scan = search(rules, tree, protect, options);
  if (protect && !options.skipped.empty()) addApart(rules, tree, options, found.scan);
  if (found.writer) {
    found.writer->setJudgement(judgementOf(rules, found.scan));
    found.writer->dropNew(found.scan.protected_paths);
    found.writer->dropNew(found.scan.protected_apart);
  }
}

}  // namespace

void searchShownTrees(const policy::Policy& policy, const CollectOptions& options, HostFacts& facts) {
  // The whole host is refused as a workspace, so it need not be searched.
  const bool workspace = plan::showsWorkspace(policy, facts);
  if (workspace) searchWorkspace(policy, options, facts);
  for (auto* list : {&facts.read_only, &facts.read_write}) {
    for (HostPath& tree : *list) {
      const bool searched = facts.named_trees.contains(tree.path);
      if (!tree.directory || tree.sys_errno != 0 || tree.path == "/" || searched) continue;
      if (!isKernelFilesystem(tree.opened->get()))
        searchNamed(policy, options, workspace, tree, list == &facts.read_write, facts);
    }
  }
}

}  // namespace caisson::host
