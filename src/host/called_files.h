// Ordinary files of a workspace that the host runs by reference: a git hook, a hook manager's configuration or an
// agent's settings call them (policy/rules/called_files.h).
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/tree_facts.h"
#include "policy/rules/protected_files.h"
#include "policy/rules/protected_links.h"
#include "sys/root_dir.h"

namespace caisson::host {

class CalledFiles {
 public:
  /// `workspace` is the canonical path of `root`. All must outlive this.
  CalledFiles(const sys::RootDir& root, const std::string& workspace, const policy::ProtectedFiles& files,
              const policy::OutsideLinks& outside)
      : root_(root), workspace_(workspace), files_(files), outside_(outside) {}

  /// Whether a file may call others: it is protected, and of a kind that holds commands. Cheap for most names.
  [[nodiscard]] bool matters(const std::string& directory, std::string_view name) const;
  /// Reads such a file. One above kMaxCommandSource is not read, and no more than 1,000.
  void add(const std::string& path);

  [[nodiscard]] std::size_t reads() const { return reads_; }
  /// Those that have no protected name of their own. They need not exist.
  [[nodiscard]] const std::vector<policy::NamedProgram>& found() const { return found_; }

 private:
  void addFound(const std::string& path, const std::string& caller);

  const sys::RootDir& root_;
  const std::string& workspace_;
  const policy::ProtectedFiles& files_;
  const policy::OutsideLinks& outside_;
  mutable std::string last_directory_ = "/";  ///< of matters()
  mutable bool in_protected_ = false;         ///< it is protected with everything in it
  std::size_t reads_ = 0;
  std::set<std::string> known_;
  std::vector<policy::NamedProgram> found_;
};

/// What is at a path now, so that a change can be told; empty: nothing.
std::string stateOfFile(const sys::RootDir& root, const std::string& path);

}  // namespace caisson::host
