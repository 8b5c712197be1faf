// Directories that outlive a sandbox: caches of package managers and compilers (`cache` of filesystem.tmpfs).
//
// Below CAISSON_HOME/caches, one per workspace and kind of use, or per name that the policy gives. Untrusted: only
// sandboxes with the same key see them, and no program of the host reads them. None is made from another one. Nothing
// of configuration is kept (cache_configuration.h). One that is nearly full is emptied when it is opened next, unless
// another sandbox uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct CacheDirectory {
  std::string path;  ///< canonical
  sys::Fd descriptor;
  sys::Fd lock;  ///< while it is open the cache is in use, and neither emptied nor removed
};

/// Opens the cache of a plan's step. Makes it if it is missing, and empties it if it was nearly full and no sandbox
/// uses it. Removes configuration, since the last user may have been killed before finishCache(); a cache that resists
/// is set aside, and the caller gets an empty one. It belongs to the caller, also if that is root.
Result<CacheDirectory> openCache(const plan::MountTmpfs& step);

struct CacheSize {
  std::uint64_t bytes = 0, inodes = 0;

  bool operator==(const CacheSize&) const = default;
};
/// Notes how much a cache holds, for the next openCache(): nearly full in bytes or inodes, it is emptied.
void noteCacheSize(const plan::MountTmpfs& step, const CacheSize& size);

/// At the end of a sandbox, when its processes are dead: removes configuration, unless another sandbox uses the cache.
/// `lock`: of openCache().
void finishCache(const sys::Fd& lock);

/// After an escape attempt: sets the content aside, as `evidence` beside it, so that no later sandbox sees it; one that
/// was set aside earlier is removed. Returns the evidence's path. Sandboxes that use the cache now keep what they have.
Result<std::string> discardCache(const plan::MountTmpfs& step);

/// Removes caches that no sandbox uses and that were not used for at least `unused`; returns their names.
Result<std::vector<std::string>> removeCaches(std::chrono::seconds unused);

/// Removes the caches whose key (MountTmpfs::cache) begins like this, also those in use: their sandboxes find them
/// empty.
Result<void> removeCachesOf(std::string_view prefix);

}  // namespace caisson::supervise
