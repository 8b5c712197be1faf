#include "host/scan_marks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "policy/rules/protected_files.h"
#include "sys/fd.h"

namespace caisson::host {

bool isUsedByGit(const RepositoryShape& shape, std::string_view name) { return shape.shaped && name == kGit; }

ScanMarks marksBelow(const ScanMarks& parent, const RepositoryShape& shape, const std::string& parent_name,
                     const std::string& name) {
  ScanMarks next = parent;
  ++next.depth;
  next.objects = false;
  if (!shape.repository) return next;
  const bool member = policy::isRepositoryMember(name);
  // The parts that hold other git directories.
  next.in_repository = next.in_repository || name == "modules" || name == "worktrees";
  next.in_git = next.in_git || member || policy::foldName(parent_name) == kGit;
  next.git_members = next.git_members || (member && isUsedByGit(shape, parent_name));
  next.objects = name == "objects";
  // Files there are executed by git, or read as configuration.
  next.executed = next.executed || name == "hooks" || name == "info";
  return next;
}

bool holdsObjects(std::string_view name) {
  return name == "pack" || (name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

void protectRepository(const sys::RootDir& root, const std::string& path, plan::WorkspaceScan& found) {
  for (const std::string_view program : policy::repositoryPrograms()) {
    const bool directory = program.ends_with('/');
    const std::string inside = join(path, directory ? program.substr(0, program.size() - 1) : program);
    const long opened = isolation::openBeneath(root.descriptor(), inside.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) continue;
    const sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0 || S_ISLNK(status.st_mode)) continue;  // links are protected by their place
    found.protected_paths.push_back({.path = inside, .directory = directory});
  }
}

}  // namespace caisson::host
