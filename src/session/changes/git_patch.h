// Patches as git writes them, so that `git apply` accepts them: unified text, renames, modes, binary content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "session/changes/line_diff.h"

namespace caisson::session {

/// One state of a path. git knows files, executable files and links; `mode` is one of its three.
struct PatchSide {
  enum class Mode : std::uint8_t { none, file, executable, link };
  Mode mode = Mode::none;  ///< none: the path does not exist on this side
  std::string_view path;
  std::string_view content;  ///< of a link: its target
};

struct PatchOptions {
  std::size_t context_lines = 3;
  bool text = true;             ///< write the patch; else only count lines
  bool binary_content = false;  ///< include the content of binary files, old and new
};

struct FilePatch {
  std::string text;
  std::uint64_t added_lines = 0, removed_lines = 0;
  bool binary = false;
};

/// The patch between two states, at least one of which exists. Different paths are a rename; `similarity`, in percent,
/// is only printed. A file that becomes a link, or the reverse, is a deletion and a creation. `budget` is reduced.
FilePatch makePatch(const PatchSide& before, const PatchSide& now, unsigned similarity, const PatchOptions& options,
                    DiffBudget& budget);

/// `prefix` and the path; in double quotes with C escapes if it holds `"`, `\` or anything but printable ASCII.
std::string quotePath(std::string_view prefix, std::string_view path);

/// Whether the content is treated as binary: a NUL byte in the first 8000 bytes, as for git, or more than a million
/// lines.
bool isBinary(std::string_view content);

/// The object id git gives to a file of this content.
std::string blobId(std::string_view content);

}  // namespace caisson::session
