// After an uncommit: what it put back counts again as what its sessions had left there.
//
// Records of commits (committed.h) name objects by inode and change time. What comes back is a copy, so that without
// this an older commit, or one of another session on the workspace, could not be undone any more.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "session/commit/committed.h"
#include "session/commit/kept_commits.h"
#include "session/commit/real_tree.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Renews the records of all sessions about the objects that were put back. `put_back`: what the uncommit left.
/// `directories`: those in which only the commit and its uncommit changed names. Errors are ignored: then these paths
/// are conflicts.
void renewRecords(const SessionPaths& paths, const KeptCommit& undone, const CommitRecord& record, RealTree& tree,
                  const Committed& put_back, const std::vector<std::string>& directories);

}  // namespace caisson::session
