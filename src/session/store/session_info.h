// What callers learn about a session.
#pragma once

#include "caisson/session.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Describes a session by its metadata. `directory`: of the session.
SessionInfo infoOf(const SessionPaths& paths, const sys::RootDir& directory, const Metadata& metadata);
/// The same for a session whose metadata cannot be read.
SessionInfo infoOf(const std::string& id, const Error& problem);

/// Keeps the warnings of the sandbox that is being started, for infoOf().
void keepWarnings(const sys::RootDir& directory, const std::vector<std::string>& warnings);

}  // namespace caisson::session
