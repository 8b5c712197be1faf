// The size-limited directories of a sandbox that are on disk: private directories in the store of a run or session.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::supervise {

struct DiskDirectories {
  std::vector<std::string> paths;  ///< canonical, in the order of the plan's steps
  std::vector<sys::Fd> descriptors;
  std::vector<sys::Fd> cache_locks;  ///< caches are in use while these are open
};

/// At the end of the sandbox, when its processes are dead: see finishCache().
void finishCaches(const DiskDirectories& directories);

/// Whether the plan has such directories.
bool hasDiskDirectories(const plan::Plan& plan);

/// Where the changes of a session's root are: a directory `name` of `store`, which has this canonical path.
struct KeptRoot {
  const sys::RootDir& store;
  std::string path, name;
};

/// Makes them in `store`, a private directory that no payload can reach, owned by the sandbox's user. Existing ones
/// keep their content, but get their mode back. Caches are opened where they are. `store_path`: the store's canonical
/// path. `root`: for plan::kRootChanges, or null.
Result<DiskDirectories> makeDiskDirectories(const sys::RootDir& store, const std::string& store_path,
                                            const plan::Plan& plan, const KeptRoot* root = nullptr);

}  // namespace caisson::supervise
