// Directories that cannot be searched, and are covered.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace caisson::host {

/// Directories that are covered. If there are more, directories above them are.
inline constexpr std::size_t kMaxCovered = 1000;

/// Names each directory once, and directories above instead of more than kMaxCovered, at one depth.
void joinCovered(std::vector<plan::WorkspaceScan::Covered>& covered);

/// Adds which directories they are, so that others in their place are noticed later. `root`: the directory that was
/// searched.
void identifyCovered(int root, std::vector<plan::WorkspaceScan::Covered>& covered);

/// Whether the directory at `path` below `root` is the one of this identity, as identifyCovered() stored it.
bool isStillCovered(int root, const std::string& path, const std::string& identity);

/// Whether this is a file system of the kernel's, such as /proc.
bool isKernelFilesystem(int directory);

}  // namespace caisson::host
