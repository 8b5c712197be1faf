// Merges what a run taught into a policy file that exists, and keeps the rest of the file: comments, other keys,
// earlier lessons.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/learn/learn.h"

namespace caisson::cli {

struct MergedPolicy {
  std::string text;
  std::vector<std::string> diff;       ///< "- key = value", "+ key = value    # why"; empty: nothing changed
  std::vector<std::string> widenings;  ///< all that the file allows beyond what it extends, one line each
};

/// Whether --learn wrote the file with this text.
bool isLearnedPolicy(std::string_view text);

/// Returns the file's new text and writes nothing. `path` names the file, `text` is its content. `own`: the run used
/// this file as its policy, so the proposal's values include those of the file; otherwise lists are joined and the
/// larger limit wins. Fails if a key cannot be replaced.
Result<MergedPolicy> mergeLessons(const std::string& path, std::string_view text, const Proposal& proposal, bool own);

/// The profile or file that the policy in `text` extends; "bash" if it names none.
Result<std::string> baseOfPolicy(const std::string& path, std::string_view text);

}  // namespace caisson::cli
