// A process of its own for what a session needs done while nobody waits for it: the caisson program, started again
// with a hidden first word. It is nobody's child and lives for as long as its work takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "session/store/session_paths.h"
#include "sys/fd.h"

namespace caisson::session {

/// The hidden first word of the command line.
inline constexpr std::string_view kWorkerArgument = "__session";

/// Whether the program is there to be started again; a library may be used without it.
bool hasWorkers();

/// Starts `caisson __session WORDS...` on the sessions of `place`. The descriptor reads what it says to who started it
/// (one line), and the end of file when it has ended. It may be closed at once. `pass`: a descriptor for its work.
Result<sys::Fd> startWorker(const SessionPaths& paths, const std::vector<std::string>& words, int pass = -1);

/// Starts the supervisor of a session, unless one runs; the caller holds the session's lock. Returns when it accepts
/// connections.
Result<void> startSupervisor(const SessionPaths& paths, const std::string& id);

/// Waits for its line, or its end, at most this long. Empty: it ended, or said nothing in time.
std::string awaitLine(const sys::Fd& worker, int milliseconds);

/// The worker itself; returns the exit status.
int workerMain(std::span<char* const> words);

}  // namespace caisson::session
