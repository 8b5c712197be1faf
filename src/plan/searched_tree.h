// Steps for what the search of a shown tree found: files that are hidden, shown in part, or protected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/nested_paths.h"
#include "plan/plan.h"

namespace caisson::plan {

/// Of files that are protected or hidden. Bounded, since each is a mount, which costs time at every launch.
inline constexpr std::size_t kMaxMasks = 2000;

/// The first of these names, and how many more there are of `total`.
std::string listed(const std::vector<std::string>& names, std::size_t total);
/// The same of paths, as displayedPath() writes them: a name cannot look like two.
std::string listedPaths(const std::vector<std::string>& paths, std::size_t total);

/// An error if a tree that is written directly lies in a directory whose files the host would execute, so that
/// everything in it is protected, or if these files cannot be told: one that was not seen before the run would count as
/// new after it.
Result<void> checkNotExecuted(const std::string& tree, const WorkspaceScan& scan);

/// An error if a tree has more files to protect or hide than kMaxMasks.
Result<void> checkMasks(const std::string& tree, std::size_t count);

/// Makes files that the host would execute read-only where the tree is writable. Each directory above them becomes a
/// mount point, which cannot be renamed: otherwise `mv .git x` would make room for another .git. A link cannot be a
/// mount point: what it leads to is protected, and one that was replaced is found after the run.
void protectFiles(const WorkspaceScan& scan, ShownTree& tree, Plan& plan);

/// The files that the host would execute in a tree that is written directly, for the check after the run.
GuardedTree guardOf(const HostPath& tree, const policy::Policy& policy, const WorkspaceScan& scan,
                    std::shared_ptr<host::TreeWriter> writer, bool is_workspace);

/// Files of the sandbox with redacted content begin with this.
inline constexpr std::string_view kRedactedFiles = "/etc/caisson/redacted-";

/// Mounts the redacted content over each file, where no overlay can show it. At level `process`, where no file can be
/// made in the root, the file is masked instead.
void addRedacted(const std::vector<ReplacedFile>& files, const std::string& target, Plan& plan);

/// Notices on what is hidden or shown in part in `tree`; "" is the workspace.
void noteHidden(const std::string& tree, const WorkspaceScan& scan, Plan& plan);
/// A notice on the other names of denied files, which are hidden with them.
void noteDeniedNames(const std::string& tree, const WorkspaceScan& scan, Plan& plan);
/// A notice on what was not searched there.
void noteCovered(const std::string& tree, const WorkspaceScan& scan, Plan& plan);

}  // namespace caisson::plan
