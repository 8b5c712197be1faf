// Three-way merge of texts by lines: what two sides changed since a common base.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "session/changes/line_diff.h"

namespace caisson::session {

/// Both sides' changes together. Nothing when they touch: changed lines with no common line between them, unless both
/// sides made the same change. A text with conflict marks is never made. `budget` bounds the search; without any left
/// more counts as touching.
std::optional<std::string> mergeLines(std::string_view base, std::string_view ours, std::string_view theirs,
                                      DiffBudget& budget);

}  // namespace caisson::session
