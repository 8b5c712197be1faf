// Existing files of a workspace that are protected because a link or git's configuration leads to them.
#pragma once

#include <string>

#include "plan/plan.h"
#include "policy/rules/protected_files.h"
#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Adds them to `scan.protected_paths`, from `scan.links` and `scan.programs`. `workspace` is the canonical path of
/// `root`, and `outside` its linksOutside().
void protectThroughLinks(const sys::RootDir& root, const std::string& workspace, const policy::ProtectedFiles& files,
                         const policy::OutsideLinks& outside, plan::WorkspaceScan& scan);

}  // namespace caisson::host
