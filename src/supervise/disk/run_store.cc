#include "supervise/disk/run_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <variant>

#include "supervise/disk/foreign_files.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::RootDir;

/// The directory of a run is its own lock: one file less to make and remove at each launch. No payload can reach the
/// directory above it.
Fd openStore(const RootDir& runs, const std::string& name) {
  return Fd(::openat(runs.descriptor(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

struct Runs {
  RootDir root;
  Fd making;  ///< locked while stores are made or looked for
};

Result<Runs> lockRuns(Result<RootDir> root) {
  if (!root) return fail(root.error());
  Fd making = openStore(*root, ".");
  if (!making) return fail(sysError(Stage::state, "open", root->knownAs(), errno));
  if (auto locked = sys::lockFile(making.get(), sys::LockKind::exclusive, sys::kLockTimeout, root->knownAs()); !locked)
    return fail(locked.error());
  return Runs{std::move(*root), std::move(making)};
}

/// Without a mount, a payload reaches its directories by their path. That of a root caller has another user id and
/// cannot enter CAISSON_HOME, so its stores are here: others may pass through, but not list or write.
std::string passableStores() { return "/var/tmp/caisson-" + std::to_string(::geteuid()); }

bool needsPassableStore(const plan::Plan& plan) { return !plan.namespaces.mount && plan.identity.change_user; }

Result<RootDir> openStores(const plan::Plan& plan) {
  const bool passable = needsPassableStore(plan);
  const std::string home = sys::stateHome();
  if (home.empty() && !passable) {
    return fail(plainError(Stage::state, "run store", "", "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  const std::string path = passable ? passableStores() : home + "/runs";
  auto opened = sys::openPrivateDirectory(path);
  if (!opened) return fail(opened.error());
  if (passable && ::fchmod(opened->get(), 0711) != 0) return fail(sysError(Stage::state, "fchmod", path, errno));
  return RootDir::adopt(std::move(*opened), {.known_as = path});
}

struct Abandoned {
  std::string name;
  Fd lock;
};

/// The stores whose holder died: their lock is free. The caller has locked the directory above them, so none is half
/// created.
std::vector<Abandoned> findAbandoned(const Runs& runs) {
  std::vector<Abandoned> found;
  alignas(dirent64) char entries[4096];
  for (long size; (size = ::syscall(SYS_getdents64, runs.making.get(), entries, sizeof(entries))) > 0;) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      Fd lock = openStore(runs.root, name);
      if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) found.push_back({name, std::move(lock)});
    }
  }
  return found;
}

/// Removes abandoned stores and returns their names. The caller holds their locks, but not that of all stores: removing
/// a large one must not delay other runs.
std::vector<std::string> removeStores(const RootDir& runs, const std::vector<Abandoned>& stores) {
  std::vector<std::string> removed;
  for (const Abandoned& one : stores) {
    if (removeForeignTree(runs, one.name)) removed.push_back(one.name);  // otherwise retried at the next start
  }
  return removed;
}

bool hasOverlayOnDisk(const plan::Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* overlay = std::get_if<plan::MountOverlay>(&step);
    return overlay != nullptr && overlay->on_disk;
  });
}

}  // namespace

RunStore::RunStore(RootDir runs, std::string name, Fd lock)
    : runs_(std::move(runs)), name_(std::move(name)), lock_(std::move(lock)) {}

RunStore::RunStore(RunStore&& other) noexcept
    : runs_(std::move(other.runs_)),
      name_(std::move(other.name_)),
      lock_(std::move(other.lock_)),
      layers_(std::move(other.layers_)),
      directories_(std::move(other.directories_)) {
  other.name_.clear();
}

RunStore::~RunStore() {
  if (name_.empty()) return;
  (void)removeForeignTree(*runs_, name_);  // leftovers are removed by the next run: the lock is free
}

bool RunStore::needed(const plan::Plan& plan) { return hasOverlayOnDisk(plan) || hasDiskDirectories(plan); }

Result<RunStore> RunStore::create(const std::string& sandbox_id, const plan::Plan& plan) {
  auto runs = lockRuns(openStores(plan));
  if (!runs) return fail(runs.error());
  const std::string& path = runs->root.knownAs();
  const std::vector<Abandoned> abandoned = findAbandoned(*runs);
  if (::mkdirat(runs->root.descriptor(), sandbox_id.c_str(), 0700) != 0) {
    return fail(sysError(Stage::state, "mkdir", path + "/" + sandbox_id, errno));
  }
  Fd lock = openStore(runs->root, sandbox_id);
  if (!lock) return fail(sysError(Stage::state, "open", path + "/" + sandbox_id, errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", sandbox_id, errno));
  if (needsPassableStore(plan) && ::fchmod(lock.get(), 0711) != 0) {
    return fail(sysError(Stage::state, "fchmod", path + "/" + sandbox_id, errno));
  }
  RunStore store(std::move(runs->root), sandbox_id, std::move(lock));
  runs->making.reset();
  removeStores(*store.runs_, abandoned);
  if (auto filled = store.fill(plan); !filled) return fail(filled.error());
  return store;
}

Result<void> RunStore::fill(const plan::Plan& plan) {
  auto store = runs_->enter(name_);
  if (!store) return fail(store.error());
  // Use the canonical name: the child opens it again without following links.
  auto path = sys::canonicalPath(store->descriptor());
  if (!path) return fail(path.error());
  auto directories = makeDiskDirectories(*store, *path, plan);
  if (!directories) return fail(directories.error());
  directories_ = std::move(*directories);
  if (!hasOverlayOnDisk(plan)) return {};
  layers_ = std::move(*path);
  // The child makes the layers, as the sandbox's user.
  if (plan.identity.parent_writes_maps &&
      ::fchown(lock_.get(), plan.identity.outside_uid, plan.identity.outside_gid) != 0) {
    return fail(sysError(Stage::state, "fchown", layers_, errno));
  }
  return {};
}

Result<std::vector<std::string>> removeAbandonedStores() {
  std::vector<std::string> removed;
  for (const std::string& path : {sys::stateHome() + "/runs", passableStores()}) {
    if (::access(path.c_str(), F_OK) != 0) continue;
    auto opened = sys::openPrivateDirectory(path);
    if (!opened && path == passableStores()) continue;  // another user can take the name, but has no stores of ours
    if (!opened) return fail(opened.error());
    auto runs = lockRuns(RootDir::adopt(std::move(*opened), {.known_as = path}));
    if (!runs) return fail(runs.error());
    const std::vector<Abandoned> abandoned = findAbandoned(*runs);
    runs->making.reset();
    std::ranges::move(removeStores(runs->root, abandoned), std::back_inserter(removed));
  }
  return removed;
}

}  // namespace caisson::supervise
