// Searches a tree together with the directory around it that gives its files their meaning.
//
// A link, a hard link or git's configuration in a repository can make a file of one of its directories a secret, or one
// that the host executes: with `.vscode -> tools/vscode` the workspace Q/tools holds editor tasks. So a tree is judged
// as a part of the repository around it, or of the directory that the operator opened.
#pragma once

#include <string>

#include "host/workspace_scan.h"
#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// The directory that `tree` (absolute) is judged from; `tree` itself if nothing is around it. That is the outermost of
/// the user's repositories around it, but none around a linked work tree of git, and `around` (absolute, or empty) if
/// that is further up. Never a home directory or one above it.
std::string enclosingDirectory(const std::string& tree, const std::string& around);

/// The directory that names of hidden directories count from: the nearest of the user's repositories around `tree`, or
/// `around` if that is further up and `tree` is in no linked work tree.
std::string projectDirectory(const std::string& tree, const std::string& around);

/// Like scanWorkspace(), and adds what a search of enclosingDirectory() finds in the tree.
plan::WorkspaceScan searchEnclosed(sys::RootDir root, const std::string& tree, const ScanOptions& options,
                                   ScanCache* cache = nullptr);

/// The links and programs of a tree and of the directory around it.
struct EnclosingLinks {
  std::string directory;  ///< paths are relative to it
  std::string prefix;     ///< path of the tree in it, with a `/` at its end; "": it is the tree itself
  std::vector<policy::WorkspaceLink> links;
  std::vector<policy::NamedProgram> programs;
  bool complete = true;
};
/// `files`: for the tree, made of these patterns. Uses an index below CAISSON_HOME, and keeps it.
EnclosingLinks findEnclosingLinks(sys::RootDir root, const std::string& tree, const policy::ProtectedFiles& files,
                                  const std::vector<std::string>& patterns, const std::string& around);

}  // namespace caisson::host
