// Directories that cannot be searched, and are covered.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace caisson::host {

/// Directories that are covered. If there are more, directories above them are.
inline constexpr std::size_t kMaxCovered = 1000;

/// Names each directory once, and directories above instead of more than kMaxCovered, at one depth.
void joinCovered(std::vector<plan::WorkspaceScan::Covered>& covered);

/// Whether this is a file system of the kernel's, such as /proc.
bool isKernelFilesystem(int directory);

}  // namespace caisson::host
