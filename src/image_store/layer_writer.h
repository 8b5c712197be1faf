// Writes the entries of one layer below a directory. The entries come from a stranger.
//
// Every name is resolved with the directory as root (openat2, RESOLVE_IN_ROOT), as a process inside would see it: a
// link planted by an earlier entry leads to another place in the layer at most. Refused, which fails the import: `..`
// in a name, NUL bytes, names and trees beyond the limits, hard links to missing files. Neutralised and reported:
// absolute names, devices, FIFOs and sockets (left out), setuid and setgid bits and extended attributes (removed).
// Whiteouts become the kernel's overlay format (layout.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "image_store/layer_stream.h"
#include "image_store/unpack_report.h"
#include "sys/root_dir.h"

namespace caisson::image {

struct LayerLimits {
  std::uint64_t bytes = 64ULL << 30;  ///< of all files, holes included
  std::uint64_t entries = 2'000'000;  ///< with directories that only names imply
  /// Of the names, link targets and attribute names of all entries, which are partly kept in memory. Two million names
  /// of 134 bytes: those of a Debian /usr have 52 on average.
  std::uint64_t text = 256ULL << 20;
  /// Of the record (layer_record.h). It has the resolved path of each entry, which a link makes longer than the name.
  std::uint64_t record = 512ULL << 20;
  std::size_t depth = 128;  ///< components of a name
  std::size_t name = 4096;  ///< bytes of a name
};

/// What the archive said about a file that now exists; the file itself has changed owner and mode.
struct OriginalFile {
  std::uint32_t mode = 0;
  std::uint64_t uid = 0, gid = 0;
  Digest digest{};  ///< of a regular file's content
};

class LayerWriter {
 public:
  LayerWriter(const sys::RootDir& root, LayerLimits limits, UnpackReport& report)
      : root_(root), limits_(limits), report_(report) {}

  /// Begins an entry; data() follows for a file, then end().
  Result<void> begin(const ArchiveEntry& entry);
  Result<void> data(std::uint64_t offset, std::string_view bytes);
  Result<void> end();
  /// Applies whiteouts and the times of directories, after the last entry.
  Result<void> finish();

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// With directories that only names imply.
  [[nodiscard]] std::uint64_t entries() const { return entries_ + implied_; }
  /// By inode number.
  [[nodiscard]] const std::unordered_map<ino_t, OriginalFile>& originals() const { return originals_; }

 private:
  struct Whiteout {
    std::string directory, name;  ///< empty name: the directory is opaque
  };

  /// Counts the entry and its text.
  Result<void> countEntry(const ArchiveEntry& entry);
  Result<std::string> checkName(std::string_view name, std::string_view what);
  /// The directory `path`, created if missing.
  Result<int> directoryFor(const std::string& path);
  Result<void> makeRoom(int parent, const std::string& name, bool for_directory, bool& exists);
  Result<void> makeDirectory(int parent, const std::string& name);
  Result<void> makeFile(int parent, const std::string& name);
  Result<void> makeLink(int parent, const std::string& name);
  Result<void> makeHardLink(int parent, const std::string& name);
  Result<void> applyWhiteout(const Whiteout& whiteout);
  /// Remembers what the archive said about the file `name`, now that it exists.
  Result<ino_t> remember(int parent, const std::string& name);
  Result<void> noteWhiteout(const std::string& directory, const std::string& name);
  Error refusal(std::string_view reason) const;
  Error failure(std::string_view call) const;

  const sys::RootDir& root_;
  LayerLimits limits_;
  UnpackReport& report_;

  ArchiveEntry entry_;  ///< the current one
  std::string path_;    ///< its normalised name
  sys::Fd file_;        ///< open while data arrives
  Sha256 hash_;
  std::uint64_t written_ = 0;  ///< up to which offset
  ino_t inode_ = 0;

  std::string cached_path_ = "\n";  ///< no name can be this
  sys::Fd cached_;
  std::uint64_t bytes_ = 0, entries_ = 0, implied_ = 0, text_ = 0;
  std::unordered_map<ino_t, OriginalFile> originals_;
  std::vector<Whiteout> whiteouts_;
  std::vector<std::pair<std::string, std::int64_t>> directory_times_;
};

}  // namespace caisson::image
