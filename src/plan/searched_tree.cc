#include "plan/searched_tree.h"

#include <algorithm>
#include <set>

#include "base/path_parts.h"
#include "base/path_text.h"
#include "plan/workspace.h"

namespace caisson::plan {

std::string listed(const std::vector<std::string>& names, std::size_t total) {
  constexpr std::size_t kMaxListed = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxListed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  const std::size_t shown = std::min(names.size(), kMaxListed);
  return total > shown ? text + " and " + std::to_string(total - shown) + " more" : text;
}

std::string listedPaths(const std::vector<std::string>& paths, std::size_t total) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(displayedPath(path));
  return listed(names, total);
}

Result<void> checkNotExecuted(const std::string& tree, const WorkspaceScan& scan) {
  if (scan.unscanned_count > 0) {
    return fail(plainError(Stage::host, "plan", tree,
                           "it has too many links, or git configurations that are too large, to tell which files the "
                           "host would execute: " +
                               listedPaths(scan.unscanned, scan.unscanned_count),
                           "use --workspace DIR:overlay, or lift the protection with --allow-exec-config"));
  }
  const auto whole = [](const WorkspaceScan::Protected& one) { return one.path == kWholeWorkspace; };
  if (std::ranges::none_of(scan.protected_paths, whole)) return {};
  return fail(plainError(Stage::host, "plan", tree, "it lies in a directory whose files the host would execute",
                         "use --workspace DIR:overlay, or lift the protection with --allow-exec-config"));
}

Result<void> checkMasks(const std::string& tree, std::size_t count) {
  if (count <= kMaxMasks) return {};
  return fail(plainError(Stage::host, "plan", tree,
                         "it has more than " + std::to_string(kMaxMasks) +
                             " files to protect or hide, and each needs a mount where it is written directly",
                         "use --workspace DIR:overlay, or name a directory with fewer of them"));
}

void protectFiles(const WorkspaceScan& scan, ShownTree& tree, Plan& plan) {
  std::set<std::string> files;  // sorted: directories come before what is in them
  for (const WorkspaceScan::Protected& one : scan.protected_paths) {
    if (one.target.empty()) files.insert(one.path);
  }
  // First: a pin repeats every mount that is below it already.
  for (const WorkspaceScan::Protected& one : scan.protected_paths) {
    const bool pinned_with_it = isInOneOf(directoryOf(one.path), files);
    if (!pinned_with_it && tree.accessAt(one.path) == TreeAccess::rw) tree.pinAbove(one.path, plan);
  }
  for (const std::string& path : files) tree.protect(path, plan);
  std::vector<std::string> shared = scan.shared_files;
  std::erase_if(shared, [](const std::string& name) { return name.starts_with('/'); });  // of read-only paths
  if (!shared.empty()) {
    plan.notices.push_back(
        "files that the host would execute have other names (hard links), through which the program may "
        "change them: " +
        listedPaths(shared, shared.size()) + "; replace them by copies");
  }
}

GuardedTree guardOf(const HostPath& tree, const policy::Policy& policy, const WorkspaceScan& scan,
                    std::shared_ptr<host::TreeWriter> writer, bool is_workspace) {
  GuardedTree guarded{.path = tree.path,
                      .around = scan.judged_from,
                      .prefix = is_workspace ? "" : tree.path + "/",
                      .opened = tree.opened,
                      .patterns = policy.filesystem.workspace.protected_files,
                      .before = scan.protected_paths,
                      .called = scan.called_files,
                      .git_directories = scan.git_directories,
                      .writer = std::move(writer)};
  guarded.before.insert(guarded.before.end(), scan.protected_apart.begin(), scan.protected_apart.end());
  for (const WorkspaceScan::Covered& one : scan.covered) {
    if (!one.identity.empty()) guarded.before.push_back({.path = one.path + "/", .target = one.identity});
  }
  return guarded;
}

void addRedacted(const std::vector<ReplacedFile>& files, const std::string& target, Plan& plan) {
  const std::string prefix(kRedactedFiles);
  auto number = std::ranges::count_if(plan.steps, [&](const Step& step) {
    const auto* made = std::get_if<MakeFile>(&step);
    return made != nullptr && made->target.starts_with(prefix);
  });
  for (const ReplacedFile& file : files) {
    if (plan.host_view) {
      plan.steps.push_back(MaskPath{target + "/" + file.path});
      continue;
    }
    const std::string copy = prefix + std::to_string(number++);
    plan.steps.push_back(MakeDirectory{"/etc/caisson"});
    plan.steps.push_back(MakeFile{copy, file.content});
    plan.steps.push_back(Bind{.source = copy,
                              .target = target + "/" + file.path,
                              .executable = false,
                              .inside = true,
                              .type = SourceType::file});
  }
}

void noteHidden(const std::string& tree, const WorkspaceScan& scan, Plan& plan) {
  const std::string in = tree.empty() ? "" : " in " + tree;
  if (!scan.secrets.empty()) {
    plan.notices.push_back("hidden" + in + ", since they look like secrets or are closed to you: " +
                           listedPaths(scan.secrets, scan.secrets.size()) +
                           "; show one with --show-file PATH, all with --show-secrets");
  }
  std::vector<std::string> redacted;
  for (const ReplacedFile& file : scan.redacted) redacted.push_back(file.path);
  if (!redacted.empty()) {
    plan.notices.push_back("shown without credentials" + in + ": " + listedPaths(redacted, redacted.size()) +
                           "; show them with --show-secrets");
  }
}

void noteDeniedNames(const std::string& tree, const WorkspaceScan& scan, Plan& plan) {
  if (scan.denied_names.empty()) return;
  plan.notices.push_back("hidden" + (tree.empty() ? std::string() : " in " + tree) +
                         ", since they are other names (hard links) of denied files: " +
                         listedPaths(scan.denied_names, scan.denied_names.size()));
}

void noteCovered(const std::string& tree, const WorkspaceScan& scan, Plan& plan) {
  const std::string in = tree.empty() ? "" : " in " + tree;
  if (!scan.missed_around.empty()) {
    plan.covered.push_back("not searched completely for links and git configurations that lead to files" +
                           (tree.empty() ? " of the workspace" : in) + ": " + scan.missed_around +
                           "; some of these may be secret, or executed by the host");
  }
  if (scan.covered.empty()) return;
  std::vector<std::string> covered;
  for (const WorkspaceScan::Covered& one : scan.covered)
    covered.push_back(displayedPath(one.path) + " (" + one.reason + ")");
  plan.covered.push_back("not shown" + in +
                         ", since it could not be searched for secrets: " + listed(covered, covered.size()));
}

}  // namespace caisson::plan
