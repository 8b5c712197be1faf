#include "supervise/disk/disk_directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <variant>

#include "supervise/disk/caches.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::supervise {
namespace {

/// The name of the plan's n-th directory in the store. Not derived from its path inside, which can be any text.
std::string directoryName(std::size_t number) { return "directory-" + std::to_string(number); }

Result<sys::Fd> makeOne(const sys::RootDir& store, const std::string& name, mode_t mode,
                        const plan::Identity& identity) {
  const bool made = ::mkdirat(store.descriptor(), name.c_str(), 0700) == 0;
  if (!made) {
    if (errno != EEXIST) {
      return fail(sysError(Stage::state, "mkdir", store.knownAs() + "/" + name, errno,
                           "set CAISSON_HOME to a directory you can write"));
    }
    // The payload of an earlier sandbox may have closed it to its owner, who may be us, or given it away.
    auto existing = store.openFile(name, {.flags = O_PATH, .types = {sys::FileType::directory}});
    if (!existing) return fail(existing.error());
    if (auto claimed = claimDirectory(existing->get()); !claimed) return fail(claimed.error());
    if (auto opened = store.openToOwner(name); !opened) return fail(opened.error());
  }
  sys::Fd directory(::openat(store.descriptor(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return fail(sysError(Stage::state, "open", store.knownAs() + "/" + name, errno));
  if ((!made || mode != 0700) && ::fchmod(directory.get(), mode) != 0)
    return fail(sysError(Stage::state, "fchmod", name, errno));
  if (identity.parent_writes_maps && ::fchown(directory.get(), identity.outside_uid, identity.outside_gid) != 0) {
    return fail(sysError(Stage::state, "fchown", name, errno));
  }
  return directory;
}

}  // namespace

void finishCaches(const DiskDirectories& directories) {
  for (const sys::Fd& lock : directories.cache_locks) finishCache(lock);
}

bool hasDiskDirectories(const plan::Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    return directory != nullptr && directory->on_disk;
  });
}

Result<DiskDirectories> makeDiskDirectories(const sys::RootDir& store, const std::string& store_path,
                                            const plan::Plan& plan, const KeptRoot* root) {
  DiskDirectories made;
  for (const plan::Step& step : plan.steps) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory == nullptr || !directory->on_disk) continue;
    if (!directory->cache.empty()) {
      auto cache = openCache(*directory);
      if (!cache) return fail(cache.error());
      made.paths.push_back(std::move(cache->path));
      made.descriptors.push_back(std::move(cache->descriptor));
      made.cache_locks.push_back(std::move(cache->lock));
      continue;
    }
    const bool kept = root != nullptr && directory->target == plan::kRootChanges;
    const std::string name = kept ? root->name : directoryName(made.paths.size());
    auto one = makeOne(kept ? root->store : store, name, directory->mode, plan.identity);
    if (!one) return fail(one.error());
    made.paths.push_back((kept ? root->path : store_path) + "/" + name);
    made.descriptors.push_back(std::move(*one));
  }
  return made;
}

}  // namespace caisson::supervise
