#include "supervise/workspace/reported_changes.h"

#include <cstddef>

#include "base/path_parts.h"
#include "base/path_text.h"
#include "host/called_files.h"
#include "host/index_flags.h"

namespace caisson::supervise {
namespace {

/// Lists texts, the first ones only.
std::string firstOf(const std::vector<std::string>& texts) {
  constexpr std::size_t kMaxListed = 10;
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i == kMaxListed) return list + " and " + std::to_string(texts.size() - i) + " more";
    list += (i == 0 ? "" : ", ") + texts[i];
  }
  return list;
}

}  // namespace

void reportChanges(const plan::GuardedTree& tree, const sys::RootDir& root, const std::string& path,
                   std::vector<std::string>& notices) {
  const std::string where = tree.prefix.empty() ? "" : " in " + displayedPath(path);
  std::vector<std::string> called, unwatched;
  for (const plan::CalledFile& one : tree.called) {
    if (host::stateOfFile(root, one.path) == one.state) continue;
    called.push_back(displayedPath(one.path) + " (called by " + displayedPath(one.caller) + ")");
  }
  if (!called.empty()) {
    notices.push_back("changed while the program ran" + where + ", and run by the host: " + firstOf(called) +
                      "; look at them first");
  }
  for (const plan::GitDirectory& one : tree.git_directories) {
    for (const std::string& file : host::unwatchedFiles(root, one.path)) {
      if (one.unwatched.contains(file)) continue;
      unwatched.push_back((file == "?" ? "some files" : displayedPath(file)) + " (" +
                          displayedPath(join(one.path, "index")) + ")");
    }
  }
  if (!unwatched.empty()) {
    notices.push_back("git does not show changes of these files any more" + where +
                      ", by flags that are new in its index: " + firstOf(unwatched) +
                      "; `git update-index --no-assume-unchanged --no-skip-worktree FILE` removes them");
  }
}

}  // namespace caisson::supervise
