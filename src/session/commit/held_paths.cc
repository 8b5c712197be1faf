#include "session/commit/held_paths.h"

#include <utility>

#include "base/deceptive_text.h"
#include "base/path_text.h"
#include "host/git_programs.h"
#include "host/workspace_scan.h"

namespace caisson::session {

HeldPaths::HeldPaths(RealTree& real, const policy::Workspace& workspace, std::string path)
    : real_(real),
      workspace_(std::move(path)),
      protected_(workspace.protected_files, workspace_),
      ordinary_(workspace.committable_files),
      shapes_(real),
      in_git_directory_(host::pathInGitDirectory(workspace_)) {}

void HeldPaths::findLinks(const std::vector<policy::WorkspaceLink>& added) {
  auto root = real_.root().enter("");
  searched_ = root.has_value();
  if (!root) return;
  auto scan = host::scanWorkspace(*std::move(root), workspace_,
                                  {.secrets = false, .protected_files = &protected_, .only_links = true});
  scan.links.insert(scan.links.end(), added.begin(), added.end());
  links_.emplace(protected_, workspace_, scan.links, scan.programs);
  searched_ = !scan.exhausted && !links_->isIncomplete();
}

std::string HeldPaths::why(const std::string& path, bool directory) {
  if (const auto found = protected_.match(path)) return std::string(policy::reason(found->category));
  if (const auto found = links_ ? links_->match(path) : std::nullopt) return found->reason(path);
  const std::string in_git = in_git_directory_ ? *in_git_directory_ + "/" + path : "";
  if (shapes_.isHeld(path) || (policy::isRepositoryMember(in_git) && !policy::isRepositoryData(in_git))) {
    return "it makes or configures a git directory, in which git runs programs";
  }
  if (!ordinary_only_) return "";
  if (!searched_) return "the workspace is too large to be searched for links and git configurations that lead to it";
  if (!isReadable(path)) return "its name has control, bidirectional or invisible characters";
  if (!ordinary_.match(path, directory)) return "not a kind of file that a model may commit";
  return "";
}

std::string HeldPaths::whyLink(const std::string& path, const std::string& target) {
  if (protected_.mayHold(path)) return "a link that gives protected names to other files";
  if (links_ && links_->isOnTheWay(path)) return "a link on the way to a protected file";
  const auto ends = links_ ? links_->ends({.path = path, .target = target}) : std::nullopt;
  if (links_ && !ends) return "a link with too many ways to follow";
  for (const std::string& end : ends.value_or(std::vector<std::string>{})) {
    if (protected_.match(end) || links_->match(end)) return "a link to " + displayedPath(end) + ", which is protected";
  }
  // Git writes through links, and only names tell its data from its configuration.
  const bool inside = in_git_directory_ && policy::isRepositoryMember(*in_git_directory_);
  return inside || shapes_.isInside(path) ? "a link in a git directory" : "";
}

}  // namespace caisson::session
