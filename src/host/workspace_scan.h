// Walks a workspace for files that usually hold secrets and for files that the host would execute.
//
// Nothing ends the search early: no clock and no load. A directory that it cannot search is in the result, to be
// covered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/search_index.h"
#include "plan/plan.h"
#include "policy/rules/protected_files.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Entries of a workspace that are searched; a directory counts as five.
inline constexpr std::size_t kMaxEntries = 5'000'000;
/// Levels below the workspace that are searched, and the length of a directory's path.
inline constexpr std::size_t kMaxDepth = 2000, kMaxPath = 3500;

struct ScanOptions {
  bool secrets = true;
  const policy::ProtectedFiles* protected_files = nullptr;  ///< null: not looked for
  bool open_closed = false;         ///< give ourselves access to directories of ours that are closed to us
  bool only_links = false;          ///< with `protected_files`: only WorkspaceScan::links and ::programs
  bool hold_links = false;          ///< also hide links on the way to a secret file: a payload could replace them
  std::string around;               ///< a directory that the tree is judged from (enclosing_search.h); may be empty
  std::vector<std::string> denied;  ///< patterns; what they match counts as secret
  std::vector<std::string> denied_paths;  ///< something else hides these, except their other names (hard links)
  std::vector<std::string> shown;         ///< secret files that are shown, relative to the workspace
  std::set<std::string> skipped;          ///< directories, relative to the workspace, that are not entered
  bool enter_mounts = false;              ///< the sandbox shows the file systems that are mounted below, too
  std::size_t max_entries = kMaxEntries;
  std::function<void(std::size_t entries)> progress;  ///< called now and then; may be empty
  /// Set: use the index of the workspace below CAISSON_HOME; the patterns that `protected_files` was made of.
  std::optional<std::vector<std::string>> index;
  bool keep_index = false;                        ///< and write it
  std::int64_t settled_after_ns = 2'000'000'000;  ///< an entry is trusted if nothing changed for so long
};

/// Remembers directories between scans of one workspace with the same options: those that did not change are not listed
/// again.
struct ScanCache {
  SearchIndex index;
  bool filled = false;
  std::size_t listed = 0;             ///< directories that the last scan listed
  std::uint64_t listings = 0;         ///< directories that were listed by all scans so far
  std::shared_ptr<ScanCache> around;  ///< of the directory around it (enclosing_search.h)
};

/// Scans `workspace` alone; searchEnclosed() judges it with what is around it. What has a protected name through a link
/// of the workspace is protected, too. Follows no link. Directories that hold other people's code (node_modules and the
/// like) come last; what is not searched is covered. All is covered if the workspace cannot be opened.
plan::WorkspaceScan scanWorkspace(const std::string& workspace, const ScanOptions& options, ScanCache* cache = nullptr);
/// The same for an open directory; `workspace` is its path, for links with absolute targets.
plan::WorkspaceScan scanWorkspace(sys::RootDir root, const std::string& workspace, const ScanOptions& options,
                                  ScanCache* cache = nullptr);

}  // namespace caisson::host
