#include "supervise/disk/run_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <variant>

#include "sys/descriptor_path.h"
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
  if (::flock(making.get(), LOCK_EX) != 0) return fail(sysError(Stage::state, "flock", root->knownAs(), errno));
  return Runs{std::move(*root), std::move(making)};
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
    if (runs.removeTree(one.name)) removed.push_back(one.name);  // otherwise retried at the next start
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
  (void)runs_->removeTree(name_);  // leftovers are removed by the next run: the lock is free
}

bool RunStore::needed(const plan::Plan& plan) { return hasOverlayOnDisk(plan) || hasDiskDirectories(plan); }

Result<RunStore> RunStore::create(const std::string& sandbox_id, const plan::Plan& plan) {
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "run store", "", "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  const std::string path = home + "/runs";
  auto opened = sys::openPrivateDirectory(path);
  if (!opened) return fail(opened.error());
  auto runs = lockRuns(RootDir::adopt(std::move(*opened), {.known_as = path}));
  if (!runs) return fail(runs.error());
  const std::vector<Abandoned> abandoned = findAbandoned(*runs);
  if (::mkdirat(runs->root.descriptor(), sandbox_id.c_str(), 0700) != 0) {
    return fail(sysError(Stage::state, "mkdir", path + "/" + sandbox_id, errno));
  }
  Fd lock = openStore(runs->root, sandbox_id);
  if (!lock) return fail(sysError(Stage::state, "open", path + "/" + sandbox_id, errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", sandbox_id, errno));
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
  const std::string path = sys::stateHome() + "/runs";
  auto runs = lockRuns(RootDir::open(path));
  if (!runs && runs.error().sys_errno == ENOENT) return std::vector<std::string>{};
  if (!runs) return fail(runs.error());
  const std::vector<Abandoned> abandoned = findAbandoned(*runs);
  runs->making.reset();
  return removeStores(runs->root, abandoned);
}

}  // namespace caisson::supervise
