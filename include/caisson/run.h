// Run one command in a sandbox and learn how it ended.
//
//   auto policy = caisson::Policy::profile("bash");
//   auto result = caisson::run({.policy = *policy, .command = {"python3", "script.py"}});
//   if (!result) { std::puts(result.error().message().c_str()); return 1; }
//   std::fwrite(result->out.data.data(), 1, result->out.data.size(), stdout);
//
// Guarantees: nothing of the payload runs before every layer of the plan is in force; when run()
// returns, no process, mount, directory or cgroup of the sandbox is left; no exception crosses.
// Safe to call from several threads at once. It does not install signal handlers unless asked to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caisson/error.h"
#include "caisson/policy.h"

namespace caisson {

enum class OutcomeKind : std::uint8_t { exited, signaled, limit, denied, setup_failed, cancelled };
enum class Limit : std::uint8_t { none, time, cpu, memory, processes, disk, file_size, output };

/// Where a run stands; the states of a run that was not refused are in its result, with their times.
enum class RunState : std::uint8_t { created, initialized, running, monitoring, completed, timeout, error, cleanup };

std::string_view name(OutcomeKind kind);
std::string_view name(RunState state);  ///< "Created", "Initialized" ...
std::string_view name(Limit limit);

struct Usage {
  double wall_ms = 0;
  double user_cpu_ms = 0;
  double system_cpu_ms = 0;
  std::uint64_t peak_memory_bytes = 0;  ///< 0: not known, for a short run of a large caller without a cgroup
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::optional<std::uint64_t> processes_peak;  ///< with threads; by a cgroup, else as seen from time to time
  std::uint64_t network_bytes = 0;              ///< both directions
  std::uint64_t network_connections = 0;        ///< that were let through
  std::uint64_t network_denied = 0;             ///< requests of any kind that were refused
};

/// Something the sandbox refused, and what would allow it (SPEC S5).
struct Denial {
  std::string rule;  ///< what refused it: a policy key, or a rule that no policy can change
  std::string object;
  std::string operation;
  std::string remedy;
  std::uint64_t count = 0;  ///< how often, where that is known
  bool probe = false;       ///< of the kind that programs try and do without: not worth a line after a success
};

/// A system call that was refused and reported, as the kernel copied it when it was made (SPEC S2).
struct Violation : Denial {
  std::string syscall;       ///< its name; "i386 call 20" under a foreign architecture
  std::string architecture;  ///< "x86_64"
  int number = 0;
  std::uint64_t arguments[6] = {};  ///< zero beyond those that the call takes
  int pid = 0;                      ///< on the host, of the thread
  std::string program;              ///< path of its executable inside; empty when it ended meanwhile
  std::string severity;             ///< "LOW", "HIGH", "CRITICAL"
  std::string indicator;  ///< what it would have been a step of: "FILESYSTEM", "PROCESS", "NETWORK", "SYSCALL"
  int error = 0;          ///< errno it was answered with
};

/// The sandbox was ended because its payload tried to get out (SPEC S4).
struct Escape {
  std::string indicator, severity;
  std::string reason;
  std::string rollback;     ///< what became of the payload's changes
  std::string quarantined;  ///< what is refused from now on: a tool's name or a command's key; empty when nothing is
  std::string trace;        ///< directory with policy, plan, events and last output; empty when it could not be kept
};

/// What a program asks of a file.
enum class FileOperation : std::uint8_t { look, read, write, create, execute };
/// How that stood inside, when it was first asked for.
enum class FileState : std::uint8_t { present, absent, hidden, read_only, noexec };
enum class HostFile : std::uint8_t { absent, file, directory, other };

std::string_view name(FileOperation operation);  ///< "look", "read" ...
std::string_view name(FileState state);          ///< "present", "absent", "hidden", "read-only", "noexec"

/// A path that was asked for, in a run that was watched. Read from the program's own memory, so it is advice for a
/// person: a program can make believe.
struct FileRequest {
  std::string path;  ///< inside, absolute
  FileOperation operation = FileOperation::look;
  FileState state = FileState::present;
  std::uint64_t count = 0;
  HostFile on_host = HostFile::absent;  ///< at the same path, as the caller sees it; looked at unless it was present
  bool host_readable = false, host_writable = false, host_executable = false;
  std::string host_directory;  ///< of something to be made: the nearest directory that the host has
  bool host_directory_writable = false;
};

/// A host that was asked for where there is no network.
struct HostRequest {
  std::string host;        ///< a name from a question to a resolver, or an address
  std::uint16_t port = 0;  ///< 0: not known
  std::uint64_t count = 0;
};

struct Stream {
  std::string data;  ///< what was captured, cut at the output limit
  bool truncated = false;
  std::uint64_t dropped = 0;  ///< bytes beyond the limit
};

struct StateChange {
  RunState state = RunState::created;
  double at_ms = 0;  ///< since the start of the run
};

struct RunResult {
  std::string sandbox_id;
  OutcomeKind outcome = OutcomeKind::setup_failed;
  int exit_code = 0;          ///< of the program, when it exited (also after meeting a limit, then never 0)
  int signal = 0;             ///< that ended it, when signaled
  Limit limit = Limit::none;  ///< that ended it, when a limit did
  Stream out, err;            ///< empty when the streams were inherited
  Usage usage;
  std::vector<Denial> denials;
  std::vector<Violation> violations;
  std::optional<Escape> escape;
  std::vector<FileRequest> files;  ///< in a run that was watched (Request::learn)
  std::vector<HostRequest> hosts;  ///< likewise
  /// What is really in force: "seccomp" -> "allowlist, 312 calls", "cgroup" -> "missing: ...".
  std::map<std::string, std::string> layers;
  std::vector<std::string> warnings;   ///< weakened or missing protections
  std::vector<std::string> notices;    ///< what a person should know: discarded changes, masked files
  std::vector<StateChange> lifecycle;  ///< in the order they were entered
  std::optional<Error> error;          ///< when outcome is setup_failed or denied
};

/// The exit status of `caisson run` for this result: the program's own; 124 time-out;
/// 125 caisson could not or would not run it; 126 not executable; 127 not found; 128+n signal n.
int exitStatus(const RunResult& result);

/// Where the payload's standard streams go.
enum class StreamMode : std::uint8_t {
  capture,  ///< into RunResult, cut at the output limit
  relay,    ///< copied to the caller's own descriptor as it comes, through a pipe or pty of ours
  discard,
};

struct Request {
  Policy policy;
  std::vector<std::string> command;  ///< argv; the program is looked up inside the sandbox
  StreamMode out = StreamMode::capture;
  StreamMode err = StreamMode::capture;
  bool relay_stdin = false;  ///< pass the caller's standard input on; else `input`, then end of file
  std::string input;
  bool interactive = false;      ///< a pty of our own for those of 0, 1, 2 that are terminals
  bool forward_signals = false;  ///< for programs: INT, TERM, HUP, QUIT, USR1, USR2, WINCH go to the payload
  /// For programs: where only the user's service manager can give a cgroup, move this process into one of its scopes.
  bool own_scope = false;
  int cancel_descriptor = -1;          ///< readable: end the run with outcome `cancelled`
  std::vector<std::string> approvals;  ///< what an owner approved for this run, e.g. "level:none"
  std::string tool;                    ///< the declared tool this is a run of, for the quarantine; or empty
  bool quarantine = true;              ///< put it away after an escape attempt; off for a test of the walls themselves
  /// Watch what the program asks for, and also report calls that are refused only because no list of the policy knows
  /// them. Allows nothing more; every call on files is slower.
  bool learn = false;
  /// For programs: overwrite the variables of this process that network.credentials name, once they are read. No later
  /// run of this process finds them.
  bool forget_secrets = false;
};

/// Runs the command. An error is returned only when the request itself is unusable (bad policy, no command);
/// a sandbox that could not be built is a result with outcome `setup_failed`.
Result<RunResult> run(const Request& request);

/// What run() would do, as text, without running anything (SPEC P8). `json` selects the machine form.
Result<std::string> describePlan(const Request& request, bool json);

}  // namespace caisson
