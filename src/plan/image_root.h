// A root from a directory or an image, instead of the host's system directories.
//
// The tree is an overlay: files and mount points of ours in a tmpfs on top, the read-only layers of the image below. So
// nothing is created in the image, and a link of the image at the path of one of our directories is hidden by it. What
// is mounted later goes to paths that contain no link.
#pragma once

#include "plan/plan.h"

namespace caisson::plan {

/// The overlay of a root's layers, in errors.
inline constexpr const char* kRootLayers = "the root's layers";

inline bool hasOtherRoot(const policy::Policy& policy) { return policy.filesystem.root != "host"; }

/// An error if the policy combines another root with what it excludes.
Result<void> checkOtherRoot(const policy::Policy& policy, const HostFacts& host);

/// As planOwnRoot(), for a root other than the host's.
Result<void> planImageRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan);

}  // namespace caisson::plan
