#include "host/judged_files.h"

#include <algorithm>

#include "plan/workspace.h"

namespace caisson::host {
namespace {

std::vector<policy::WorkspaceLink> linksIn(const std::vector<plan::WorkspaceScan::Protected>& found,
                                           const policy::ProtectedFiles& files) {
  std::vector<policy::WorkspaceLink> links;
  for (const auto& one : found) {
    if (one.target.empty() || one.path.ends_with('/')) continue;  // the latter is the identity of a directory
    // One without a protected name may be a hook: then the host executes what it leads to.
    const bool named = files.match(one.path) || files.mayHold(one.path);
    links.push_back({.path = one.path, .target = one.target, .executed = !named});
  }
  return links;
}

}  // namespace

JudgedFiles::JudgedFiles(const std::string& tree, const TreeJudgement& judgement,
                         const std::vector<plan::WorkspaceScan::Protected>& found)
    : files_(judgement.patterns, tree),
      around_(!judgement.around.empty()),
      programs_(judgement.programs),
      links_(files_, tree, linksIn(found, files_)) {}

bool JudgedFiles::names(const std::string& path, bool link) const {
  return files_.match(path).has_value() || (link && files_.mayHold(path));
}

bool JudgedFiles::covers(const std::string& path, bool link) const {
  // The links and configurations around the tree are in no record.
  if (around_ || names(path, link) || links_.match(path)) return true;
  return std::ranges::any_of(programs_, [&](const std::string& program) {
    return program.empty() || plan::below(path, program) || plan::below(program, path);
  });
}

}  // namespace caisson::host
