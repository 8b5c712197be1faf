// One command of a session in the foreground, from the request to its result.
#pragma once

#include <functional>
#include <optional>

#include "caisson/session.h"
#include "plan/plan.h"
#include "session/connection.h"
#include "session/host_asker.h"
#include "session/watch.h"
#include "supervise/escape.h"

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
/// `listen`: somebody will answer the calls that the filter refuses, and so see them.
Result<CompiledCommand> compileCommand(const plan::Plan& plan, const TerminalSize& terminal, bool listen);

struct Recorder {
  /// Puts the command on record: beside the preparations in the sandbox, and before its program starts. Its error is
  /// runCommand's, and then nothing was started.
  std::function<Result<void>()> starting;
  /// A call that was refused.
  std::function<void(const Violation&)> refused;
};

struct Aftermath {
  bool lives_on = false;       ///< whether anything runs on in the session
  supervise::LastOutput last;  ///< for the trace of an escape attempt
};

/// For a result with `escape` set: the outcome that follows.
void explainEscape(std::string_view call, const std::string& program, RunResult& result);

/// Nothing when pid 1 went away before the command started: then it may be tried again. `asker`: null, or who asks the
/// person at the terminal about hosts.
Result<std::optional<RunResult>> runCommand(const plan::Plan& plan, const ExecRequest& request,
                                            const std::string& session, const Connection& connection,
                                            SessionWatch& watch, const Recorder& recorder, HostAsker* asker,
                                            Aftermath& aftermath);

}  // namespace caisson::session
