// Three-way merge of texts by lines: what two sides changed since a common base.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "session/changes/line_diff.h"

namespace caisson::session {

/// The base with the changes of both sides. Nothing on a conflict: changed lines of both sides with no unchanged line
/// between them, unless both made the same change. Never contains conflict marks. `budget` bounds the search; when it
/// is used up, changes count as larger than they are, so more conflicts are found.
std::optional<std::string> mergeLines(std::string_view base, std::string_view ours, std::string_view theirs,
                                      DiffBudget& budget);

}  // namespace caisson::session
