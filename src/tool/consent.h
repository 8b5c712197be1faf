// What a declared tool may do only with an owner's word (SPEC L1, N9, INV-S1, INV-S7).
//
// A shell below `full`: unless the tool's program is no shell, under whatever name, link, copy or script, and its
// policy leaves it none to start. Network of any kind. The word is an approval `tool:NAME`, asked for when the tool is
// declared and looked for each time it runs, so that revoking it stops the tool.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "tool/registry.h"

namespace caisson::tool {

/// What needs the owner's word, one sentence each, without full stop. Looks at the program on this host.
std::vector<std::string> needsConsent(const Tool& tool);

/// "tool:NAME".
std::string consentFor(const Tool& tool);

/// Before each run: an error unless nothing needs the owner's word, or it was given and holds. One given for once is
/// used up.
Result<void> checkConsent(const Tool& tool, std::int64_t now);

/// Keeps the owner's word for a year.
Result<void> keepConsent(const Tool& tool, std::string by, std::int64_t now);
/// Takes back every word for a tool of this name: the next one that has it is another tool.
Result<void> dropConsent(std::string_view name, std::int64_t now);

}  // namespace caisson::tool
