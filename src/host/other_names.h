// Other names (hard links) of hidden files in a workspace.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "host/listed_tree.h"
#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

class OtherNames {
 public:
  /// A name of a file that the tree tracks.
  void add(std::uint64_t inode, std::string path) { names_.emplace_back(inode, std::move(path)); }
  /// Adds the other names of hidden files, also of those in hidden directories, to `found.secrets`, and of redacted
  /// ones to `found.redacted`.
  void hide(const sys::RootDir& root, const ListedTree& tree, plan::WorkspaceScan& found);
  /// Adds the other names of denied files, and of files in denied directories, to `found.denied_names`. Call first.
  void hideDenied(const sys::RootDir& root, const ListedTree& tree, const std::vector<std::string>& denied,
                  plan::WorkspaceScan& found);
  /// After hide(): hidden files with names that are not known, and those that were tracked, if any of them was not.
  [[nodiscard]] const std::vector<std::uint64_t>& untracked() const { return untracked_; }

 private:
  /// Hidden files whose names are not all known.
  void noteUntracked(const ListedTree& tree, const std::vector<std::uint64_t>& inodes);

  std::vector<std::pair<std::uint64_t, std::string>> names_;
  std::vector<std::uint64_t> untracked_;
};

}  // namespace caisson::host
