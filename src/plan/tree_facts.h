// What the search of the directories that a sandbox shows has found, and what follows for a run.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policy/rules/protected_links.h"
#include "sys/fd.h"

namespace caisson::host {
class TreeWriter;
}

namespace caisson::plan {

/// A file that is shown with different content.
struct ReplacedFile {
  std::string path;
  std::string content;
};

/// Tells an object from another that gets its name later, also if that gets its inode.
struct ObjectStamp {
  std::uint64_t inode = 0;  ///< 0: unknown
  std::int64_t born_ns = 0;
  bool operator==(const ObjectStamp&) const = default;
};

/// A file that the host runs because a protected one calls it.
struct CalledFile {
  std::string path;
  std::string caller;
  std::string state;  ///< tells whether it changed since (host::stateOfFile())
};

/// A git directory, and the files whose changes git does not show, by flags in its index.
struct GitDirectory {
  std::string path;
  std::set<std::string> unwatched;
};

/// Result of the search of the workspace, or of another tree. Paths are relative to it.
struct WorkspaceScan {
  struct Protected {
    std::string path;
    bool directory = false;  ///< protected with everything below
    std::string target;      ///< of a link, which is protected as such; empty: not a link
    std::string through;     ///< the link or configuration that leads to it; empty: its own name is protected
    ObjectStamp stamp = {};  ///< of what is there; not of a link
  };
  std::vector<std::string> secrets;                 ///< files and directories that usually hold secrets
  std::map<std::string, std::string> secret_kinds;  ///< why they are: "key: a private key"
  std::vector<ReplacedFile> redacted;               ///< git configurations, without their credentials
  std::vector<Protected> protected_paths;           ///< existing files that the host would execute; only for `rw`
  /// The same in parts that are shown for themselves: not protected with this tree, but there before the run.
  std::vector<Protected> protected_apart;
  std::vector<policy::WorkspaceLink> links;    ///< all; only if the scan looks for protected files
  std::vector<policy::NamedProgram> programs;  ///< of git's configurations; as `links`
  std::vector<policy::NamedProgram> called;    ///< by hooks and settings; as `links`
  std::vector<CalledFile> called_files;        ///< the same, with their states; only for `rw`
  std::vector<GitDirectory> git_directories;   ///< only for `rw`
  std::vector<std::string> shared_files;       ///< of `protected_paths` and (absolute) read-only: have other names
  std::vector<std::string> unscanned;          ///< the first of those whose links or configurations are too many
  std::size_t unscanned_count = 0;             ///< all of them
  /// Not searched, so not shown: "." is the workspace itself.
  struct Covered {
    std::string path;
    std::string reason;
    std::string identity = {};  ///< sys::FileIdentity::text(), if the scan looks for protected files
  };
  std::vector<Covered> covered;
  std::string judged_from;    ///< the directory around the tree that was searched, too; empty: there is none
  std::string missed_around;  ///< a part of that which was not searched, and why; empty: it was searched completely
  std::vector<std::string> denied_names;  ///< other names (hard links) of denied files
  /// A limit of the search was reached, or it failed. Not so for directories that are closed to the user, or on other
  /// file systems.
  bool exhausted = false;

  /// All that the sandbox may not see.
  [[nodiscard]] std::vector<std::string> hidden() const {
    std::vector<std::string> names = secrets;
    for (const Covered& one : covered) names.push_back(one.path);
    names.insert(names.end(), denied_names.begin(), denied_names.end());
    return names;
  }
};

/// A directory that the policy names, besides the workspace.
struct NamedTree {
  WorkspaceScan scan;
  std::shared_ptr<host::TreeWriter> writer = {};  ///< if it is written directly
};

/// A tree of the host that is written directly, with protection of files that the host would execute.
struct GuardedTree {
  std::string path;                   ///< on the host
  std::string around = {};            ///< a directory that the tree is judged from (host/enclosing_search.h)
  std::string prefix = {};            ///< of names in results; "": names are relative to the tree
  sys::SharedFd opened = {};          ///< the directory itself
  std::vector<std::string> patterns;  ///< of the policy, in addition to the built-in table
  /// Protected files that exist, and covered directories with a `/` at the end and their identity as the target:
  /// nothing is new in these, unless another sandbox put another directory in their place.
  std::vector<WorkspaceScan::Protected> before;
  /// What a program may write, but not unseen: changes are reported after the run.
  std::vector<CalledFile> called = {};
  std::vector<GitDirectory> git_directories = {};
  std::shared_ptr<host::TreeWriter> writer = {};  ///< its entry among those who write there
};

/// A workspace that is searched for new secret files while the sandbox runs.
struct WatchedWorkspace {
  std::string path;                 ///< on the host
  sys::SharedFd opened = {};        ///< the directory itself
  std::string target;               ///< inside
  std::vector<std::string> hidden;  ///< names that are hidden from the beginning, relative to it
};

}  // namespace caisson::plan
