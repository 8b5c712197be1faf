// A command of a session in the landlock tier.
//
// There is no pid namespace that could outlive a command and be killed as a whole, so no sandbox is kept: each command
// is a separate run over the session's files, and its processes end with it. Commands may run at the same time.
#pragma once

#include "caisson/session.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Marks the session as in use (isInUse()) until the result is closed. Several commands may hold it.
Result<sys::Fd> useTierSession(const sys::RootDir& directory);

/// Runs a command and waits for its end. The caller has called useTierSession().
Result<RunResult> runInTier(const SessionPaths& paths, const Metadata& metadata, const ExecRequest& request);

/// Plans a command, to find out whether a new session's can be started. Returns the warnings.
Result<std::vector<std::string>> checkTierSession(const SessionPaths& paths, const Metadata& metadata);

/// The error for what such a session cannot do.
Error notInTier(std::string_view call, const Metadata& metadata, std::string_view why, std::string_view hint);

}  // namespace caisson::session
