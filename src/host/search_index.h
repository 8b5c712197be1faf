// What the search of a workspace remembers of its directories: in memory between the commands of a session, and in a
// file below CAISSON_HOME between launches.
//
// It is an aid only. It holds names, no verdicts about places: a directory's entry counts if one statx() shows the same
// inode and times as when it was listed, and the rules are applied to the names again. An entry is trusted only if the
// directory had not changed for two seconds when it was listed, since a later change could get the same time stamp.
// What a file's content showed counts in the same way. A file of entries that is damaged, too old, or another user's is
// ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/root_dir.h"

namespace caisson::host {

/// The state of a file or directory that its content or names belong to.
struct FileState {
  std::uint64_t inode = 0, size = 0;
  std::int64_t changed_ns = 0;  ///< 0: unknown
  std::int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

class SearchIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Text {
    std::uint32_t at = 0;
    std::uint32_t length = 0;
  };
  enum DirectoryFlags : std::uint16_t {
    kShaped = 1,     ///< its entries have the shape of a git directory
    kGitFile = 2,    ///< it has a file `.git`
    kMayMatter = 4,  ///< its own name may be one that a rule is about
    kConfig = 8      ///< it has a file `config`, as git directories do
  };
  /// Its subdirectories and the names that matter are next to each other.
  struct Directory {
    FileState state;  ///< changed_ns 0: to be listed
    Text name;
    std::uint32_t first_directory = 0, directories = 0;
    std::uint32_t first_name = 0, names = 0;
    std::uint32_t flags = 0;
    std::uint32_t entries = 0;  ///< of all kinds
  };
  enum class Kind : std::uint8_t { file, link, other_name };
  /// `harmless_in_git`: also by the rules for files in git directories.
  enum class Verdict : std::uint8_t { unknown, harmless, secret, harmless_in_git };
  struct Name {
    FileState state;  ///< of a file whose content was judged; `inode` also of Kind::other_name
    Text name;
    Text target;  ///< of a link
    Kind kind = Kind::file;
    Verdict verdict = Verdict::unknown;
    std::uint16_t reserved = 0;
    std::uint32_t reserved_too = 0;
  };

  std::vector<Directory> directories;  ///< the first one is the workspace
  std::vector<Name> names;
  std::vector<std::uint64_t> tracked;  ///< sorted inodes: every name of these in the workspace is in `names`
  std::string text;

  [[nodiscard]] std::string_view view(Text part) const { return std::string_view(text).substr(part.at, part.length); }
  Text add(std::string_view part);
  /// The paths and inodes of the directories that were searched.
  [[nodiscard]] std::map<std::string, std::uint64_t> paths() const;

  /// Drops texts that no entry has any more, if these are many.
  void compact();
  /// The index as a file, for entries that were made by `rules`.
  [[nodiscard]] std::string serialized(std::uint64_t rules) const;
  /// Nothing if the data is damaged or was made by other rules. Whatever the data is, all positions in the result are
  /// valid and all names are names of single files.
  static std::optional<SearchIndex> parse(std::string_view data, std::uint64_t rules);

 private:
  [[nodiscard]] bool isValid() const;
};

/// A number for a text, to tell files of one user apart.
std::uint64_t hashOf(std::string_view text, std::uint64_t seed = 0);

/// Reads and replaces the index of a workspace below CAISSON_HOME.
class IndexFile {
 public:
  /// `rules`: what decides which names matter, besides the program itself.
  IndexFile(int workspace, const std::string& path, std::string_view rules);

  [[nodiscard]] std::optional<SearchIndex> load() const;
  /// A failure means that the next search takes longer.
  void save(const SearchIndex& index) const;

 private:
  std::string name_;
  std::uint64_t rules_ = 0;
};

/// Whether the change times of this file system can be relied on. Not so for network file systems, whose clients cache
/// them, for FUSE, and for overlays, whose lower directories change without notice.
bool hasReliableTimes(int directory);

}  // namespace caisson::host
