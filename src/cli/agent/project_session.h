// The session in which an agent's own shell runs: one per project, found by the project's directory.
#pragma once

#include <string>

#include "caisson/session.h"

namespace caisson::cli {

/// How long it lives after the last command. Changes that were not committed are kept a week longer.
inline constexpr double kAgentSessionSeconds = 24.0 * 3600;

/// policy::Policy::use of an agent's sessions.
inline constexpr const char* kAgentUse = "agent";

/// The project that `directory` belongs to: the nearest directory upward that git manages, else `directory` itself.
/// The search ends before the home directory.
Result<std::string> projectDirectory(const std::string& directory);

/// The name of the project's session: readable, and different for two projects of the same name.
std::string projectSessionName(const std::string& project);

/// An error if the session shows another directory than the project, at the project's own path: a name alone says
/// nothing about who created it.
Result<void> checkProjectSession(Session& session, const std::string& project);

/// Finds the session, or creates it with this policy. Brings back one that expired with uncommitted changes. An error
/// if a session with another workspace has its name.
Result<Session> openProjectSession(SessionStore& store, const std::string& project, const Policy& policy);

}  // namespace caisson::cli
