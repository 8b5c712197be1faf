// Reads git's index. Whatever the bytes are, reading ends and stays inside them. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// A regular file of a git index.
struct IndexEntry {
  std::string path;
  std::string id;  ///< of the blob, 40 hexadecimal digits
  std::uint32_t size = 0, inode = 0;
  std::uint32_t modified_s = 0, modified_ns = 0, changed_s = 0, changed_ns = 0;
};

/// The entries that stand for one regular file each: no links, no unmerged or skipped ones. Reads formats 2 to 4 with
/// SHA-1 names, and stops at what it does not understand.
std::vector<IndexEntry> readIndex(std::string_view bytes);

/// An index, or the shared one of a split index, is at most so large where its flags are looked at.
inline constexpr std::uint64_t kMaxIndexBytes = 64U << 20;

/// Files whose changes `git status` and `git diff` do not show, because an entry has the flag assume-unchanged or
/// skip-worktree (of a sparse index: a directory, with a `/` at its end).
struct IndexFlags {
  std::set<std::string> unwatched = {};
  bool complete = true;  ///< false: what follows an entry cannot be read, also by git
  /// The index is split: so much of it is in the file `sharedindex.SHARED`, and flags of entries without a path belong
  /// to entries there.
  std::string shared = {};
  bool unnamed = false;  ///< such an entry has a flag
};
/// Reads names of SHA-1 and SHA-256 repositories.
IndexFlags readIndexFlags(std::string_view bytes);

}  // namespace caisson::policy
