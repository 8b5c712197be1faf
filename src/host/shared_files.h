// Protected files of a workspace that have other names, as hard links: a read-only mount covers one name only.
#pragma once

#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Fills `scan.shared_files` from `scan.protected_paths`, also with files below them, and their stamps. A directory
/// that was not searched completely is added with a "/" at its end.
void findSharedFiles(const sys::RootDir& root, plan::WorkspaceScan& scan);

/// Of what is at a path now; unknown if nothing is.
plan::ObjectStamp stampOf(const sys::RootDir& root, const std::string& path);

/// Adds the regular files at and below this canonical path that have other names, as absolute paths.
void findSharedFilesIn(const plan::HostPath& path, std::vector<std::string>& found);

}  // namespace caisson::host
