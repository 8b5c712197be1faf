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
  HostPrompt* prompt = nullptr;  ///< prompts for hosts on the terminal, or null
};

/// Runs a command through the supervisor. Returns nothing if the sandbox ended before the command started: the caller
/// may retry.
Result<std::optional<RunResult>> runForeground(const SupervisorConnection& connection, const ExecRequest& request,
                                               const ForegroundOptions& options);

/// The part of a request for the supervisor, with the variables of this process that the policy passes.
CommandOptions commandOptionsOf(const ExecRequest& request, const Welcome& welcome);

}  // namespace caisson::session
