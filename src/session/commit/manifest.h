// The manifest of a commit: what a person or a model approves.
#pragma once

#include <string>
#include <vector>

#include "caisson/session.h"
#include "session/commit/journal.h"

namespace caisson::session {

/// What the manifest says of one action.
ManifestEntry manifestEntry(const Change& change, const Action& action);

/// The digest that an approval is bound to: of everything that the commit writes, and where.
std::string manifestDigest(const std::string& workspace, const std::vector<ManifestEntry>& manifest);

}  // namespace caisson::session
