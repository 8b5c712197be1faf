// The record of an unpacked layer: one line per entry, sorted by path.
//
//   f 0755 0 0 1234 HASH usr/bin/env        a file: mode, uid and gid in the archive, size, hash of its content
//   d 0700 0 0 - - root                     a directory; D: an opaque one
//   l 0777 0 0 - - bin usr/bin              a link and its target
//   w 0 0 0 - - etc/motd                    a whiteout
//
// Blanks, control characters, `%` and bytes beyond ASCII in names are written as %XX.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "image_store/layer_writer.h"
#include "sys/root_dir.h"

namespace caisson::image {

struct RecordLine {
  char type = 'f';
  std::uint32_t mode = 0;  ///< in the archive
  std::uint64_t uid = 0, gid = 0, size = 0;
  std::string hash;  ///< 64 digits, or "-"
  std::string path, target;

  [[nodiscard]] std::string written() const;
  static Result<RecordLine> parse(std::string_view line);
  /// The mode of the unpacked file.
  [[nodiscard]] std::uint32_t appliedMode() const;
};

/// Takes the next part of a record.
using RecordSink = std::function<Result<void>(std::string_view)>;

/// Writes the record of the tree `root`, which only the caller writes, to `sink`. Content hashes and original modes
/// come from `originals`, by inode number; a file that is not in it (an implied directory) has its own mode. An error
/// if the record has more than `max_bytes`.
Result<void> describeLayer(const sys::RootDir& root, const std::unordered_map<ino_t, OriginalFile>& originals,
                           std::uint64_t max_bytes, const RecordSink& sink);

/// Returns the next part of a record; empty at its end.
using RecordSource = std::function<Result<std::string>()>;

struct VerifyProblem {
  std::string path, what;
};

/// Compares the tree with its record, reading every file. Calls `progress` with the bytes read so far. Keeps one line
/// of the record at a time: a record of a hostile layer has up to 512 MiB.
Result<std::vector<VerifyProblem>> verifyLayer(const sys::RootDir& root, const RecordSource& record,
                                               const std::function<void(std::uint64_t)>& progress = {});

}  // namespace caisson::image
