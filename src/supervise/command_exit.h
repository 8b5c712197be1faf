// How a command ended, and how its result reports it: one set of rules for runs and for commands of a session.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// The first cause of a command's end.
enum class EndedBy : std::uint8_t {
  itself,          ///< its exit, a signal, a failed set-up, or a kill whose cause is kept elsewhere (escape, OOM)
  timeout,         ///< its time limit
  client,          ///< its caller
  limit,           ///< another limit
  sibling_escape,  ///< another command of the session tried to escape
  setup_timeout,   ///< its process did not reach exec in time
  sandbox,         ///< the end of the session's sandbox
};

struct CommandExit {
  EndedBy ended_by = EndedBy::itself;
  Limit limit = Limit::none;       ///< with EndedBy::limit
  std::string reason;              ///< of the limit or of the sandbox's end, for display
  std::optional<Error> failure;    ///< of the set-up, or of a part that the command depends on
  std::optional<int> wait_status;  ///< of the command's first process
  bool killed = false;             ///< by caisson
  bool out_of_memory = false;      ///< the kernel's OOM killer killed one of its processes
  Limit met = Limit::none;         ///< a limit that the kernel enforces and that a failing program hit
  bool in_session = false;         ///< a command of a session, not of `caisson run`
  bool alone = false;              ///< in a session: the limit ended only this command
};

/// Whether the command, or a child of its shell, was ended for a file that grew beyond RLIMIT_FSIZE.
bool ranIntoFileSize(const CommandExit& exit);

/// Sets outcome, limit, exit code, signal, error and notices. `result` already has usage and escape. Pure.
void classify(CommandExit exit, const plan::Plan& plan, RunResult& result);

/// Sets outcome and error for a sandbox that was killed after an escape attempt; `result.escape` is set. `call` and
/// `program`: for the error.
void classifyEscape(std::string_view call, const std::string& program, RunResult& result);

/// Sets outcome setup_failed with the error, to which it adds reason and remedy.
void setupFailed(Error error, const plan::Plan& plan, RunResult& result);

}  // namespace caisson::supervise
