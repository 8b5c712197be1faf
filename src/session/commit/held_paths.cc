#include "session/commit/held_paths.h"

#include <utility>

#include "base/deceptive_text.h"
#include "base/path_parts.h"
#include "base/path_text.h"
#include "host/enclosing_search.h"
#include "host/followed_path.h"
#include "host/git_programs.h"

namespace caisson::session {

HeldPaths::HeldPaths(RealTree& real, const policy::Workspace& workspace, std::string path)
    : real_(real),
      workspace_(std::move(path)),
      around_(workspace.around),
      patterns_(workspace.protected_files),
      protected_(workspace.protected_files, workspace_),
      ordinary_(workspace.committable_files),
      shapes_(real),
      in_git_directory_(host::pathInGitDirectory(workspace_)) {
  const std::string project = host::projectDirectory(workspace_, around_);
  if (project != workspace_) in_project_ = workspace_.substr(project.size() + 1) + "/";
}

void HeldPaths::findLinks(const std::vector<policy::WorkspaceLink>& added) {
  auto root = real_.root().enter("");
  searched_ = root.has_value();
  if (!root) return;
  auto found = host::findEnclosingLinks(*std::move(root), workspace_, protected_, patterns_, around_);
  in_enclosing_ = found.prefix;
  for (policy::WorkspaceLink link : added) {
    link.path.insert(0, in_enclosing_);
    found.links.push_back(std::move(link));
  }
  enclosing_.emplace(protected_.at(found.directory));
  links_.emplace(*enclosing_, found.directory, found.links, found.programs, host::linksOutside(found.directory));
  searched_ = found.complete && !links_->isIncomplete();
}

std::string HeldPaths::why(const std::string& path, bool directory) {
  if (const auto found = protected_.match(path)) return std::string(policy::reason(found->category));
  if (const auto found = links_ ? links_->match(in_enclosing_ + path, directory) : std::nullopt) {
    return found->reason(in_enclosing_ + path);
  }
  const std::string in_git = in_git_directory_ ? *in_git_directory_ + "/" + path : "";
  if (shapes_.isHeld(path) || (policy::isRepositoryMember(in_git) && !policy::isRepositoryData(in_git))) {
    return "it makes or configures a git directory, in which git runs programs";
  }
  if (!ordinary_only_) return "";
  if (!searched_) return "the workspace is too large to be searched for links and git configurations that lead to it";
  if (!isPlainName(path)) return "its name has invisible or control characters, or letters that look like others";
  if (!ordinary_.match(in_project_ + path, directory)) return "not a kind of file that a model may commit";
  return "";
}

bool HeldPaths::isGitIndex(const std::string& path) {
  if (policy::foldName(nameOf(path)) != "index") return false;
  return policy::foldName(nameOf(directoryOf(path))) == ".git" || shapes_.isInside(path) || in_git_directory_;
}

std::string HeldPaths::whyLink(const std::string& path, const std::string& target) {
  if (protected_.mayHold(path)) return "a link that gives protected names to other files";
  if (links_ && links_->isOnTheWay(in_enclosing_ + path)) return "a link on the way to a protected file";
  const auto ends = links_ ? links_->ends({.path = in_enclosing_ + path, .target = target}) : std::nullopt;
  if (links_ && !ends) return "a link with too many ways to follow";
  for (const std::string& end : ends.value_or(std::vector<std::string>{})) {
    if (!end.starts_with(in_enclosing_)) continue;  // it leads out of the workspace
    const std::string inside = end.substr(in_enclosing_.size());
    if (protected_.match(inside) || links_->match(end)) {
      return "a link to " + displayedPath(inside) + ", which is protected";
    }
  }
  // Git writes through links, and only names tell its data from its configuration.
  const bool inside = in_git_directory_ && policy::isRepositoryMember(*in_git_directory_);
  return inside || shapes_.isInside(path) ? "a link in a git directory" : "";
}

}  // namespace caisson::session
