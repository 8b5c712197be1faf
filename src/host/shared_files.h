// Protected files of a workspace that have other names, as hard links: a read-only mount covers one name only.
#pragma once

#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Fills `scan.shared_files` from `scan.protected_paths`, also with files below them. A directory that was not searched
/// completely is added with a "/" at its end.
void findSharedFiles(const sys::RootDir& root, plan::WorkspaceScan& scan);

}  // namespace caisson::host
