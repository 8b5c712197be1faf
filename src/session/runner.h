// One command of a session in the foreground, from the request to its result.
#pragma once

#include <functional>
#include <optional>

#include "caisson/session.h"
#include "plan/plan.h"
#include "session/connection.h"
#include "session/watch.h"

namespace caisson::session {

/// The part of a command that pid 1 is sent: the plan without its steps, in a memory file.
struct CompiledCommand {
  sys::Fd file;
  std::uint64_t address = 0, bytes = 0;
};
struct TerminalSize {
  bool stream[3] = {false, false, false};
  std::uint16_t rows = 24, columns = 80;
};
Result<CompiledCommand> compileCommand(const plan::Plan& plan, const TerminalSize& terminal);

/// Nothing when pid 1 went away before the command started: then it may be tried again.
/// `record` puts the command on record: beside the preparations in the sandbox, and before its program starts. Its
/// error is this one's, and then nothing was started. `lives_on`: whether anything runs on in the session.
Result<std::optional<RunResult>> runCommand(const plan::Plan& plan, const ExecRequest& request,
                                            const std::string& session, const Connection& connection,
                                            SessionWatch& watch, const std::function<Result<void>()>& record,
                                            bool& lives_on);

}  // namespace caisson::session
