#include "host/git_programs.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/path_parts.h"
#include "base/text.h"
#include "policy/rules/git_config.h"
#include "policy/rules/protected_files.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxConfig = 1 << 20;

}  // namespace

std::optional<std::string> pathInside(const std::string& workspace, const std::string& base, std::string_view value) {
  std::vector<std::string> at;
  if (value.starts_with('/')) {
    if (workspace.empty() || !value.starts_with(workspace + "/")) return std::nullopt;
    value.remove_prefix(workspace.size());
  } else if (value.starts_with('~')) {
    return std::nullopt;
  } else {
    for (const std::string_view part : split(base, '/')) at.emplace_back(part);
  }
  for (const std::string_view part : split(value, '/')) {
    if (part == ".") continue;
    if (part != "..") {
      at.emplace_back(part);
    } else if (at.empty()) {
      return std::nullopt;
    } else {
      at.pop_back();
    }
  }
  if (at.empty()) return std::nullopt;  // the workspace itself
  return joined(at, "/");
}

void findGitPrograms(const sys::RootDir& root, const std::string& workspace, const std::string& path,
                     std::vector<policy::NamedProgram>& to) {
  const std::string prefix = path.empty() ? "" : path + "/";
  const bool named = policy::foldName(path.substr(path.rfind('/') + 1)) == ".git";
  std::string work_tree = named ? directoryOf(path) : path;
  std::vector<std::string> configs{prefix + "config", prefix + "config.worktree"};
  for (std::size_t i = 0; i < configs.size() && i < kMaxGitConfigs; ++i) {
    const std::string config = configs[i];
    const auto text = root.readFile(config, kMaxConfig);
    if (!text) continue;
    const policy::GitConfigPaths found = policy::pathsInGitConfig(*text);
    if (!found.work_tree.empty()) {
      if (auto inside = pathInside(workspace, path, found.work_tree)) work_tree = *std::move(inside);
    }
    for (const std::string& value : found.executed) {
      if (auto inside = pathInside(workspace, work_tree, value)) to.push_back({*std::move(inside), config});
    }
    for (const std::string& value : found.included) {
      auto inside = pathInside(workspace, directoryOf(config), value);
      if (!inside) continue;
      configs.push_back(*inside);
      to.push_back({*std::move(inside), config});
    }
  }
}

}  // namespace caisson::host
