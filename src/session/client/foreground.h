// The client's side of a foreground command: streams, terminal and signals, until the supervisor sends the result.
#pragma once

#include <optional>

#include "caisson/session.h"
#include "session/client/connection.h"
#include "session/client/host_prompt.h"

namespace caisson::session {

struct ForegroundOptions {
  std::string session_id;
  std::string notice;            ///< added to the result's notices
  HostPrompt* prompt = nullptr;  ///< prompts for hosts on the terminal, or null
};

/// Runs a command through the supervisor and waits for its end. Returns nothing if the sandbox ended before the command
/// started: the caller may retry. An error: the supervisor refused the request or was killed. If the request could not
/// be sent, the result has outcome setup_failed.
Result<std::optional<RunResult>> runForeground(const SupervisorConnection& connection, const ExecRequest& request,
                                               const ForegroundOptions& options);

/// The part of a request that the supervisor gets, with the variables of this process that the policy passes.
CommandOptions commandOptionsOf(const ExecRequest& request, const Welcome& welcome);

}  // namespace caisson::session
