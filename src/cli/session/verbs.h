// The verbs of `caisson session`, by file, and shared helpers.
#pragma once

#include "caisson/session.h"
#include "cli/verb.h"

namespace caisson {
class JsonWriter;
}

namespace caisson::cli {

extern const Verb kSessionCreate, kSessionList, kSessionRenew, kSessionDestroy;  // session.cc
extern const Verb kSessionInfo;                                                  // info.cc
extern const Verb kSessionExec, kSessionShell;                                   // exec.cc
extern const Verb kSessionPs, kSessionLogs, kSessionStop;                        // background.cc
extern const Verb kSessionCheckpoint, kSessionCheckpoints, kSessionRestore;      // layers.cc
extern const Verb kSessionFork, kSessionRebind;                                  // layers.cc
extern const Verb kSessionDiff, kSessionExport;                                  // diff.cc
extern const Verb kSessionCp;                                                    // copy.cc
extern const Verb kSessionCommit;                                                // commit.cc
extern const Verb kSessionUncommit;                                              // uncommit.cc
extern const Verb kSessionNetwork;                                               // network.cc
extern const Verb kSessionExpose;                                                // expose.cc
extern const Verb kSessionRead, kSessionWrite;                                   // files.cc

/// Exit status of a commit or uncommit that left something, or could not print what it did.
inline constexpr int kIncomplete = 1;

/// Fails if operands are missing or too many. `most` 0: any number.
Result<void> countOperands(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most);

/// Opens the session that the first operand names; fails if operands are missing or too many. `most` 0: any number.
Result<Session> sessionOf(const Arguments& arguments, std::string_view verb, std::size_t least, std::size_t most);

/// Parses a duration above 0 such as `30m`; the error names `subject`, the option or verb.
Result<double> secondsFrom(std::string_view text, std::string_view subject);

/// Formats a duration for display.
std::string durationText(double seconds);

/// Reports how a command ended: notices on standard error, or with `json` one object on standard output. Returns the
/// exit status. `printed`: a notice shown before the command, not repeated.
int reportCommand(const RunResult& result, bool json, std::string_view printed = {});
/// Lets a closed output end the command in order instead of killing this process.
void surviveBrokenPipes();

/// How many lines changed in each file, as text.
Result<std::string> statOf(Session& session, DiffOptions options);
/// Prints that. Returns the exit status.
int printStat(Session& session, DiffOptions options);

/// What a commit did not write, or would not in a dry run: one line each, not yet safe to display.
std::vector<std::string> commitLists(const CommitReport& report, bool dry_run);
/// Prints these lines.
void printCommitLists(const CommitReport& report, bool dry_run);

/// Writes the members of a session's JSON object that lists show as well.
void writeInfo(JsonWriter& json, const SessionInfo& info);

}  // namespace caisson::cli
