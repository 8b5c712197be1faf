// The client's side of a foreground command: streams, terminal and signals, until the supervisor sends the result.
#pragma once

#include <optional>

#include "caisson/session.h"
#include "session/client/connection.h"
#include "session/client/host_prompt.h"

namespace caisson::session {

struct ForegroundOptions {
  std::string session;
  std::string notice;            ///< for the result
  HostPrompt* prompt = nullptr;  ///< asks the person at the terminal about hosts, or null
};

/// Runs a command through the supervisor. Nothing when the sandbox went away before the command started: then it may be
/// tried again.
Result<std::optional<RunResult>> runForeground(const SupervisorConnection& connection, const ExecRequest& request,
                                               const ForegroundOptions& options);

/// The part of a request that the supervisor gets, with those variables of this process that the policy passes on.
CommandOptions commandOptionsOf(const ExecRequest& request, const Welcome& welcome);

}  // namespace caisson::session
