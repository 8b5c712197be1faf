#include "session/commit/closed_paths.h"

#include <algorithm>
#include <filesystem>

#include "plan/denied_paths.h"
#include "policy/decode/syntax.h"
#include "policy/rules/denied_names.h"
#include "session/commit/own_paths.h"

namespace caisson::session {
namespace {

/// Paths of the host as they are written, and where links lead.
std::vector<std::string> hostPaths(const std::vector<std::string>& written) {
  std::vector<std::string> paths;
  for (const std::string& one : written) {
    paths.push_back("/" + foldedPath(policy::normalPath(one)));
    std::error_code problem;
    const auto real = std::filesystem::canonical(one, problem);
    if (!problem) paths.push_back("/" + foldedPath(real.string()));
  }
  return paths;
}

/// The length of the longest of these directories that holds `path`; 0: none does.
std::size_t longestAbove(const std::vector<std::string>& directories, const std::string& path) {
  std::size_t longest = 0;
  for (const std::string& one : directories) {
    if (policy::isWithin(path, one)) longest = std::max(longest, one.size());
  }
  return longest;
}

}  // namespace

ClosedPaths::ClosedPaths(const policy::Policy& policy, std::string_view workspace)
    : workspace_("/" + foldedPath(workspace)),
      denied_(plan::deniedInWorkspace(policy, workspace)),
      read_only_(hostPaths(policy.filesystem.read_only)),
      read_write_(hostPaths(policy.filesystem.read_write)) {
  for (std::size_t i = 0, count = denied_.size(); i < count; ++i) denied_.push_back(foldedPath(denied_[i]));
}

bool ClosedPaths::isDenied(std::string_view path) const {
  const std::string same = foldedPath(path);
  return std::ranges::any_of(denied_, [&](const std::string& entry) {
    return policy::deniesPath(entry, path) || policy::deniesPath(entry, same);
  });
}

bool ClosedPaths::isReadOnly(const std::string& path) const {
  const std::string on_host = workspace_ + "/" + foldedPath(path);
  const std::size_t shown = longestAbove(read_only_, on_host);
  if (shown <= longestAbove(read_write_, on_host)) return false;
  return shown > workspace_.size() || with_workspace_;
}

std::string ClosedPaths::why(std::string_view path) const {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    if (isDenied(path.substr(0, slash))) return "the policy denies " + std::string(path.substr(0, slash));
  }
  if (isDenied(path)) return "the policy denies it";
  return isReadOnly(std::string(path)) ? "the policy shows it read-only" : "";
}

}  // namespace caisson::session
