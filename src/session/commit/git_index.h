// Reads git's index. Whatever the bytes are, reading ends and stays inside them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::session {

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

}  // namespace caisson::session
