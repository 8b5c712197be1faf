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
  }
  if (in_workspace_ && !target_) {
    done = openInWorkspace();
    if (done) done = moveHere(path);
  }
  if (done && std::ranges::find(directories_, target_path_) == directories_.end()) directories_.push_back(target_path_);
  return done;
}

Result<void> FileQuarantine::moveHere(const std::string& path) {
  auto done = moveTo(*target_, path);
  if (done || done.error().sys_errno != EEXIST) return done;
  // A later search found the directory of a file that was moved.
  const auto random = sys::unpredictableName();
  if (!random) return done;
  const auto fresh = makeNew(*target_, *random);
  return fresh ? moveTo(*fresh, path) : fail(fresh.error());
}

Result<void> FileQuarantine::moveTo(const sys::RootDir& to, const std::string& path) {
  if (auto made = to.makeDirs(directoryOf(path), 0700); !made) return made;
  const auto source = workspace_.enter(directoryOf(path));
  if (!source) return fail(source.error());
  const auto target = to.enter(directoryOf(path));
  if (!target) return fail(target.error());
  const std::string name = nameOf(path);
  const auto rename = [&] {
    return ::renameat2(source->descriptor(), name.c_str(), target->descriptor(), name.c_str(), RENAME_NOREPLACE) == 0;
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
