#include "supervise/workspace/file_quarantine.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/path_parts.h"
#include "host/owner_access.h"
#include "policy/rules/name_pattern.h"
#include "sys/remove_tree.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

constexpr const char* kInWorkspace = ".caisson-quarantine";

/// Creates a directory that does not exist yet.
Result<sys::RootDir> makeNew(const sys::RootDir& parent, const std::string& name) {
  if (::mkdirat(parent.descriptor(), name.c_str(), 0700) != 0) {
    return fail(sysError(Stage::state, "mkdirat", name, errno));
  }
  return parent.enter(name);
}

/// Creates the directory `id` in kInWorkspace. An error if that is not a directory of ours.
Result<sys::RootDir> makeUsual(const sys::RootDir& workspace, const std::string& id) {
  if (::mkdirat(workspace.descriptor(), kInWorkspace, 0700) != 0 && errno != EEXIST) {
    return fail(sysError(Stage::state, "mkdirat", kInWorkspace, errno));
  }
  auto fd = workspace.openFile(kInWorkspace, {.flags = O_PATH, .types = {sys::FileType::directory}});
  if (!fd) return fail(fd.error());
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0 || status.st_uid != ::geteuid()) {
    return fail(sysError(Stage::state, "open", kInWorkspace, EPERM));
  }
  const auto directory = sys::RootDir::adopt(*std::move(fd), {});
  if (!directory) return fail(directory.error());
  return makeNew(*directory, id);
}

/// The innermost directory that is, or is above, both directories; "": the root.
std::string commonDirectory(const std::string& one, const std::string& other) {
  const auto differ = std::ranges::mismatch(one, other).in1;
  const auto length = static_cast<std::size_t>(differ - one.begin());
  const auto ends = [length](const std::string& path) { return length == path.size() || path[length] == '/'; };
  return ends(one) && ends(other) ? one.substr(0, length) : directoryOf(one.substr(0, length));
}

}  // namespace

FileQuarantine::FileQuarantine(const sys::RootDir& workspace, std::string path, std::string id)
    : workspace_(workspace), path_(std::move(path)), id_(std::move(id)) {}

Result<void> FileQuarantine::openBelowHome() {
  const std::string name = "quarantined-files/" + id_;
  const auto home = sys::RootDir::open(sys::stateHome());
  if (!home) return fail(home.error());
  if (auto made = home->makeDirs(name, 0700); !made) return made;
  auto entered = home->enter(name);
  if (!entered) return fail(entered.error());
  target_ = *std::move(entered);
  target_path_ = sys::stateHome() + "/" + name;
  return {};
}

Result<void> FileQuarantine::openInWorkspace() {
  (void)host::giveOwnerAccess(workspace_, "");  // the payload may have closed it
  std::string name = std::string(kInWorkspace) + "/" + id_;
  auto made = makeUsual(workspace_, id_);
  if (!made) {
    const auto random = sys::unpredictableName();
    if (!random) return fail(sysError(Stage::state, "getrandom", path_, errno));
    name = *random;
    made = makeNew(workspace_, name);
  }
  if (!made) return fail(made.error());
  target_ = *std::move(made);
  target_path_ = path_ + "/" + name;
  name_in_workspace_ = name;
  return {};
}

Result<void> FileQuarantine::move(const std::string& path) {
  Result<void> done = in_workspace_ || target_ ? Result<void>{} : openBelowHome();
  if (done && target_) done = moveHere(path);
  if (!done && !in_workspace_) {
    in_workspace_ = true;
    target_.reset();
    parents_.reset();
  }
  if (in_workspace_ && !target_) {
    done = openInWorkspace();
    if (done) done = moveHere(path);
  }
  if (done && std::ranges::find(directories_, target_path_) == directories_.end()) directories_.push_back(target_path_);
  return done;
}

Result<FileQuarantine::Parents> FileQuarantine::openParents(const sys::RootDir& to, const std::string& path,
                                                            const std::string& made) const {
  auto source = workspace_.enter(path);
  if (!source) return fail(source.error());
  const std::string common = commonDirectory(path, made);
  auto target = to.enter(common);
  for (const std::string_view part : policy::splitParts(std::string_view(path).substr(common.size()), '/')) {
    if (!target) break;
    if (auto created = target->makeDirs(part, 0700); !created) return fail(created.error());
    target = target->enter(part);
  }
  if (!target) return fail(target.error());
  return Parents{path, *std::move(source), *std::move(target)};
}

Result<void> FileQuarantine::moveHere(const std::string& path) {
  const std::string directory = directoryOf(path);
  if (!parents_ || parents_->path != directory) {
    auto parents = openParents(*target_, directory, parents_ ? parents_->path : "");
    if (!parents) return fail(parents.error());
    parents_ = *std::move(parents);
  }
  auto done = moveBetween(*parents_, path);
  if (done || done.error().sys_errno != EEXIST) return done;
  // A later search found the directory of a file that was moved.
  const auto random = sys::unpredictableName();
  if (!random) return done;
  const auto fresh = makeNew(*target_, *random);
  if (!fresh) return fail(fresh.error());
  const auto parents = openParents(*fresh, directory, "");
  return parents ? moveBetween(*parents, path) : fail(parents.error());
}

Result<void> FileQuarantine::moveBetween(const Parents& parents, const std::string& path) {
  const std::string name = nameOf(path);
  const auto rename = [&] {
    return ::renameat2(parents.from.descriptor(), name.c_str(), parents.to.descriptor(), name.c_str(),
                       RENAME_NOREPLACE) == 0;
  };
  if (rename()) return {};
  int error = errno;
  // A directory that moves to another one must be writable, and so must the one above it; the payload chose the modes.
  if (error == EACCES) {
    const bool changed = host::giveOwnerAccess(workspace_, directoryOf(path));
    if ((host::giveOwnerAccess(workspace_, path) || changed) && rename()) return {};
    error = errno;
  }
  return fail(sysError(Stage::state, "renameat2", path, error));
}

}  // namespace caisson::supervise
