// A background process for a session: the caisson program, started again with a hidden first argument. It is not a
// child of its starter and exits when its work is done.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "session/store/session_paths.h"
#include "sys/fd.h"

namespace caisson::session {

/// The hidden first argument.
inline constexpr std::string_view kWorkerArgument = "__session";

/// Starts `caisson __session WORDS...` on the sessions of `paths`. The returned descriptor reads one line of status,
/// and end of file when the worker exits. It may be closed at once. `pass`: a descriptor for its work.
Result<sys::Fd> startWorker(const SessionPaths& paths, const std::vector<std::string>& words, int pass = -1);

/// Starts the supervisor of a session, unless one runs; the caller holds the session's lock. Returns when it accepts
/// connections.
Result<void> startSupervisor(const SessionPaths& paths, const std::string& id);

/// Waits at most this long for its line or its exit. Empty: it exited, or sent nothing in time.
std::string awaitLine(const sys::Fd& worker, int milliseconds);

/// The worker itself; returns the exit status.
int workerMain(std::span<char* const> words);

}  // namespace caisson::session
