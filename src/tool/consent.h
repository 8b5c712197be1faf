// What a declared tool may do only with the owner's approval.
//
// A shell below `full`, unless the tool's program is not a shell (under any name, link, copy or script) and its policy
// does not let it start one. Network of any kind. The approval is `tool:NAME`, requested when the tool is declared and
// checked at each run, so that revoking it disables the tool.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "tool/registry.h"

namespace caisson::tool {

/// What needs the owner's approval, one sentence each, without full stop; empty: nothing. Inspects the program on this
/// host.
std::vector<std::string> needsConsent(const Tool& tool);

/// The text to approve (approval/what.h): "tool:NAME".
std::string consentFor(const Tool& tool);

/// Call before each run: an error if something needs the owner's approval and it is missing or expired. Uses up an
/// approval with scope once; approvals for a session do not count.
Result<void> checkConsent(const Tool& tool, std::int64_t now);

/// Stores the owner's approval for a year.
Result<void> keepConsent(const Tool& tool, std::string by, std::int64_t now);
/// Revokes all approvals for this tool name: the next tool with the name is another one.
Result<void> dropConsent(std::string_view name, std::int64_t now);

}  // namespace caisson::tool
