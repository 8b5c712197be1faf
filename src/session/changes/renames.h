// Which of the added files are renamed ones: same content, or half of it, as a file that was deleted.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace caisson::session {

struct RenameCandidate {
  std::size_t item = 0;  ///< the caller's number for the file
  std::uint64_t size = 0;
};

struct Rename {
  std::size_t from = 0, to = 0;  ///< the caller's numbers
  unsigned similarity = 100;     ///< in percent
};

/// Content of a candidate, or nothing when it cannot be read.
using ReadCandidate = std::function<std::optional<std::string>(std::size_t item)>;

/// Pairs deleted with added files, except empty ones and those over 16 MiB. Renames with the same content are found
/// among any number of files; similar texts up to 256 KiB (common lines are half of the larger one) only if at most 200
/// files are left on each side.
std::vector<Rename> findRenames(const std::vector<RenameCandidate>& deleted, const std::vector<RenameCandidate>& added,
                                const ReadCandidate& read);

}  // namespace caisson::session
