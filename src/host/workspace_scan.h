// Walks a workspace for files that usually hold secrets and for files that the host would execute, within a budget of
// entries and time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "policy/rules/protected_files.h"
#include "sys/root_dir.h"

namespace caisson::host {

struct ScanOptions {
  bool secrets = true;
  const policy::ProtectedFiles* protected_files = nullptr;  ///< null: not looked for
  bool open_closed = false;         ///< give ourselves access to directories of ours that are closed to us
  bool only_links = false;          ///< with `protected_files`: only WorkspaceScan::links and ::programs
  bool hold_links = false;          ///< also hide links on the way to a secret file: a payload could replace them
  std::vector<std::string> denied;  ///< patterns; what they match counts as secret
  std::string skipped;              ///< a directory, relative to the workspace, that is not entered; "": none
  std::size_t max_entries = 50'000;
  std::chrono::milliseconds max_time{100};
  std::chrono::milliseconds max_cpu_time{100};  ///< of this thread
};

/// Budget for workspaces that are written to directly: files that are not found stay writable.
inline constexpr std::size_t kMaxGuardedEntries = 500'000;
/// CPU time, so that a payload cannot end the search by load on the machine, and a bound for disks that answer late.
inline constexpr std::chrono::milliseconds kMaxGuardedCpuTime{2000}, kMaxGuardedTime{20'000};

/// Remembers directories between scans of one workspace: those that did not change are not listed again.
class ScanCache {
 public:
  struct Directory {
    std::uint64_t device = 0, inode = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    std::vector<std::string> files;        ///< names that matter: secret, or to be looked at, or protected; no links
    std::vector<std::string> links;        ///< with ScanOptions::protected_files all, else names that matter
    std::vector<std::string> directories;  ///< names of subdirectories
    bool shaped = false;                   ///< it has the shape of a git directory
    bool repository = false;               ///< the same, or it has the name of one
    bool git_file = false;                 ///< it has a file `.git`, which names a git directory
    bool complete = true;                  ///< the budget covered all of it
  };
  std::map<std::string, Directory> directories;
};

/// Scans `workspace`. What has a protected name through a link of the workspace is protected, too. Follows no link and
/// enters no other file system. Directories that hold other people's code (node_modules and the like) come last; what
/// the budget does not cover is named in the result. Empty if the workspace cannot be opened.
plan::WorkspaceScan scanWorkspace(const std::string& workspace, const ScanOptions& options, ScanCache* cache = nullptr);
/// The same for an open directory; `workspace` is its path, for links with absolute targets.
plan::WorkspaceScan scanWorkspace(sys::RootDir root, const std::string& workspace, const ScanOptions& options,
                                  ScanCache* cache = nullptr);

}  // namespace caisson::host
