// A commit as text for the person who approves it. MCP and HTTP show the same.
//
// The paths come from a payload, so every line is made with safeLine(): a name can neither add a line nor reorder one.
#pragma once

#include <string>
#include <vector>

#include "caisson/session.h"

namespace caisson {

/// "3 changes (1 added, 2 modified, 0 deleted, 120 bytes)"
std::string commitTotals(const CommitReport& report);

/// "added src/a.c (120 bytes, executable, sha256 0123456789ab)"
std::string commitLine(const ManifestEntry& entry);

/// The changes that the host may execute later, or that are of an unusual kind.
std::vector<const ManifestEntry*> cautionEntries(const CommitReport& report);

/// What an approver must notice: each of cautionEntries() with its reason, at most `most` and then a count. Empty if
/// there are none.
std::string commitCaution(const CommitReport& report, std::size_t most);

}  // namespace caisson
