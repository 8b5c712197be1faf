// The verbs of `caisson session`, by file, and shared helpers.
#pragma once

#include "caisson/session.h"
#include "cli/verb.h"

namespace caisson {
class JsonWriter;
}

namespace caisson::cli {

extern const Verb kSessionCreate, kSessionList, kSessionRenew, kSessionDestroy;  // session.cc
extern const Verb kSessionInfo;                                                  // session_info.cc
extern const Verb kSessionExec, kSessionShell;                                   // session_exec.cc
extern const Verb kSessionPs, kSessionLogs, kSessionStop;                        // session_background.cc
extern const Verb kSessionCheckpoint, kSessionCheckpoints, kSessionRestore;      // session_layers.cc
extern const Verb kSessionFork;                                                  // session_layers.cc
extern const Verb kSessionDiff, kSessionExport;                                  // session_diff.cc
extern const Verb kSessionCp;                                                    // session_copy.cc
extern const Verb kSessionCommit;                                                // session_commit.cc
extern const Verb kSessionNetwork;                                               // session_network.cc
extern const Verb kSessionExpose;                                                // session_expose.cc
extern const Verb kSessionRead, kSessionWrite;                                   // session_files.cc

/// Fails if operands are missing or too many. `most` 0: any number.
Result<void> countOperands(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most);

/// Opens the session that the first operand names; fails if operands are missing or too many. `most` 0: any number.
Result<Session> sessionOf(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most);

/// Parses a duration such as `30m`, given for `subject`.
Result<double> secondsFrom(std::string_view text, std::string_view subject);

/// Formats a UTC time, and a duration, for display.
std::string timeText(std::int64_t seconds);
std::string durationText(double seconds);

/// Writes the members of a session's JSON object that lists show as well.
void writeInfo(JsonWriter& json, const SessionInfo& info);

}  // namespace caisson::cli
