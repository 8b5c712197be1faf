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

/// Starts `caisson __session WORDS...` on the sessions of `paths`. The returned descriptor reads the worker's status
/// text, if it writes one, and end of file when a supervisor is ready or the worker exits; it may be closed at once.
/// `pass`: a descriptor that the worker gets.
Result<sys::Fd> startWorker(const SessionPaths& paths, const std::vector<std::string>& words, int pass = -1);

/// Starts the supervisor of a session, in which none may run: the new one replaces its socket. The caller holds the
/// session's lock. Returns when it accepts connections, or an error after 30 seconds.
Result<void> startSupervisor(const SessionPaths& paths, const std::string& id);

/// Waits for a line from a worker, or its exit, at most `milliseconds`. Empty: it exited, or sent no line in time.
std::string awaitLine(const sys::Fd& worker, int milliseconds);

/// Runs the worker in this process and returns its exit status. `words`: the arguments after kWorkerArgument.
int workerMain(std::span<char* const> words);

}  // namespace caisson::session
