// Entries of `filesystem.denied`: which names they mean, and what they mean for another workspace. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// Whether a part of an entry means a name. Each part is a name and a pattern: `[id].tsx` denies the file of that name,
/// and `i.tsx`. A `*` also matches a dot at the beginning.
bool deniesName(const std::string& part, const std::string& name);

/// Whether an entry means exactly this path, part by part. Both are relative to the same directory.
bool deniesPath(std::string_view entry, std::string_view path);

struct DeniedElsewhere {
  std::vector<std::string> entries;  ///< what they deny below the other workspace, as entries for it
  std::string whole;                 ///< not empty: the entry that denies the workspace itself or a directory above it
};

/// What entries below /workspace that were written for the workspace `top` deny if the workspace is `workspace`,
/// another directory, below `top` or above it. Both are canonical paths of the host.
DeniedElsewhere deniedElsewhere(const std::vector<std::string>& entries, std::string_view top,
                                std::string_view workspace);

}  // namespace caisson::policy
