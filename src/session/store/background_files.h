// Files of a background command in the session's logs/: N.json describes the command, N.out and N.err hold its output,
// N.end how it ended, N.blocked its blocked system calls, if any. Written by the supervisor. N.stopped, written by the
// client that stops a command, marks it as stopped; it counts if it was there when the command ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/run.h"
#include "caisson/session.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline std::string fileName(std::uint32_t exec, const char* ending) { return std::to_string(exec) + ending; }

/// Reserves the next free number by creating its N.json.
Result<std::uint32_t> claimNumber(const sys::RootDir& logs);
/// Writes N.json: the command, and the current time as its start. An error if it could not be read back.
Result<void> writeCommandFile(const sys::RootDir& logs, std::uint32_t exec, const std::vector<std::string>& command);
/// Removes all files of a command.
void removeCommandFiles(const sys::RootDir& logs, std::uint32_t exec);

/// Creates N.stopped.
Result<void> markStopped(const sys::RootDir& logs, std::uint32_t exec);
/// Removes the files of commands that have ended, except those of the newest `keep`. `sandbox_alive` as for
/// describeCommand().
Result<void> removeEnded(const sys::RootDir& logs, std::size_t keep, bool sandbox_alive);

/// For an ended command: empties its logs and counts their bytes as dropped in N.end. Returns the bytes that this
/// freed. `spare`: leaves a command with at most this many bytes alone for 10 seconds after its end, when clients read
/// them.
std::uint64_t freeOutput(const sys::RootDir& logs, std::uint32_t exec, std::uint64_t spare);
/// For an ended command: removes all its files, and returns their bytes.
std::uint64_t freeRecord(const sys::RootDir& logs, std::uint32_t exec);

inline constexpr std::uint32_t kEndRecordMark = 0x43535245;  ///< the first bytes of an N.end

/// N.end. Later versions may append members, and nothing else.
struct EndRecord {
  std::uint32_t mark = kEndRecordMark;
  std::int32_t status = 0;                         ///< as wait4 returns it
  std::uint32_t outcome = 0;                       ///< OutcomeKind
  std::uint16_t limit = 0;                         ///< Limit
  std::uint16_t stopped = 0;                       ///< 1: N.stopped was there; writeEnd() sets it
  double wall_ms = 0, user_ms = 0, system_ms = 0;  ///< wall_ms < 0: it ended with its sandbox
  std::uint64_t peak_bytes = 0;
  std::int64_t ended = 0;             ///< seconds since 1970
  std::uint64_t dropped[2] = {0, 0};  ///< bytes of standard output and error that were not kept
};
Result<void> writeEnd(const sys::RootDir& logs, std::uint32_t exec, EndRecord record);
/// Call when no sandbox runs: writes an N.end (killed) for each command without one, which ended with its sandbox.
void writeMissingEnds(const sys::RootDir& logs);

/// Replaces the list of the command's blocked calls.
Result<void> writeBlocked(const sys::RootDir& logs, std::uint32_t exec, const std::vector<Violation>& violations);

/// Describes a command. `sandbox_alive`: call isSupervised() before this function, since the supervisor may write N.end
/// in between. If false, a command without N.end is reported as killed with its sandbox.
Result<ExecInfo> describeCommand(const sys::RootDir& logs, std::uint32_t exec, bool sandbox_alive);
/// The numbers of all background commands of the session, in order.
Result<std::vector<std::uint32_t>> listCommands(const sys::RootDir& logs);

}  // namespace caisson::session
