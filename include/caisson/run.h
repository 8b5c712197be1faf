// Runs one command in a sandbox and reports how it ended.
//
//   auto policy = caisson::Policy::profile("bash");
//   auto result = caisson::run({.policy = *policy, .command = {"python3", "script.py"}});
//   if (!result) { std::puts(result.error().message().c_str()); return 1; }
//   std::fwrite(result->out.data.data(), 1, result->out.data.size(), stdout);
//
// Guarantees: no payload code runs before every layer of the plan is in force. When run() returns, no process, mount,
// directory or cgroup of the sandbox is left. No exception is thrown. Safe to call from several threads at once.
// Handles signals only if Request::forward_signals is set.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caisson/error.h"
#include "caisson/policy.h"

namespace caisson {

/// denied: the policy does not allow the command, or it was killed after an escape attempt (in a session, of any
/// command); setup_failed: it never started; cancelled: killed by its caller.
enum class OutcomeKind : std::uint8_t { exited, signaled, limit, denied, setup_failed, cancelled };
/// output: a stream exceeded the output limit by 16 GiB; output that is only truncated does not end a run.
enum class Limit : std::uint8_t { none, time, cpu, memory, processes, disk, file_size, output };

/// The state of a run. RunResult::lifecycle lists the states that the run entered, with times; none if it was refused
/// before anything was set up.
enum class RunState : std::uint8_t { created, initialized, running, monitoring, completed, timeout, error, cleanup };

std::string_view name(OutcomeKind kind);
std::string_view name(RunState state);  ///< "Created", "Initialized" ...
std::string_view name(Limit limit);

struct Usage {
  double wall_ms = 0;
  double user_cpu_ms = 0;
  double system_cpu_ms = 0;
  std::uint64_t peak_memory_bytes = 0;  ///< 0: unknown (a short run without a cgroup, started by a large process)
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::optional<std::uint64_t> processes_peak;  ///< includes threads; from the cgroup, else sampled
  std::uint64_t network_bytes = 0;              ///< both directions
  std::uint64_t network_connections = 0;        ///< allowed connections
  std::uint64_t network_denied = 0;             ///< denied requests of any kind
};

/// Something the sandbox denied, and what would allow it.
struct Denial {
  std::string rule;  ///< what denied it: a policy key, or a built-in rule that no policy can change
  std::string object;
  std::string operation;
  std::string remedy;
  std::uint64_t count = 0;  ///< number of times, where known
  bool probe = false;       ///< programs commonly try this and do without: not worth reporting after a success
};

/// The operation of a Denial that came too late: the payload made the file, and it could not be moved away.
inline constexpr std::string_view kNotMoved = "not moved";

/// A system call that the filter blocked and reported, with the arguments the kernel saw.
struct Violation : Denial {
  std::string syscall;       ///< its name; "i386 call 20" under a foreign architecture
  std::string architecture;  ///< "x86_64"
  int number = 0;
  std::uint64_t arguments[6] = {};  ///< zero beyond the call's argument count
  int pid = 0;                      ///< host pid of the calling thread
  std::string program;              ///< path of its executable inside; empty if the process exited too early
  std::string severity;             ///< "LOW", "HIGH", "CRITICAL"
  std::string indicator;  ///< kind of attack it could be part of: "FILESYSTEM", "PROCESS", "NETWORK", "SYSCALL"
  int error = 0;          ///< errno returned to the payload
};

/// The sandbox was killed because of an escape attempt.
struct Escape {
  std::string indicator, severity;
  std::string reason;
  std::string rollback;     ///< what happened to the payload's changes
  std::string quarantined;  ///< what is quarantined from now on: a tool's name or a command's key; empty: nothing
  std::string trace;        ///< directory with policy, plan, events and last output; empty if it could not be saved
};

/// How a program accesses a file. look: only looks the path up; write: also renames and removes.
enum class FileOperation : std::uint8_t { look, read, write, create, execute };
/// What the access found inside the sandbox, the first time. `present`: nothing is missing; for a file to be created,
/// its directory exists.
enum class FileState : std::uint8_t { present, absent, hidden, read_only, noexec };
enum class HostFile : std::uint8_t { absent, file, directory, other };

std::string_view name(FileOperation operation);  ///< "look", "read" ...
std::string_view name(FileState state);          ///< "present", "absent", "hidden", "read-only", "noexec"

/// A path that the payload accessed in a learning run (Request::learn). Read from the payload's memory, which it can
/// forge: use it as advice for the user only.
struct FileRequest {
  std::string path;  ///< inside, absolute
  FileOperation operation = FileOperation::look;
  FileState state = FileState::present;
  std::uint64_t count = 0;
  HostFile on_host = HostFile::absent;  ///< at the same path, as the caller sees it; not checked if `state` is present
  bool host_readable = false, host_writable = false, host_executable = false;
  std::string host_directory;  ///< for a path to be created: its nearest existing parent on the host
  bool host_directory_writable = false;
};

/// A host that the payload tried to reach in a sandbox without network.
struct HostRequest {
  std::string host;        ///< a name from a DNS query, or an address
  std::uint16_t port = 0;  ///< 0: unknown
  std::uint64_t count = 0;
};

struct Stream {
  std::string data;  ///< captured output, truncated at the output limit
  bool truncated = false;
  std::uint64_t dropped = 0;  ///< bytes beyond the limit, or that could not be written
  int write_error = 0;        ///< errno of a relayed stream that could not be written; 0: none
};

struct StateChange {
  RunState state = RunState::created;
  double at_ms = 0;  ///< since the start of the run
};

struct RunResult {
  std::string sandbox_id;
  OutcomeKind outcome = OutcomeKind::setup_failed;
  int exit_code = 0;          ///< of the program if it exited by itself; else 0: use exitStatus()
  int signal = 0;             ///< the signal that killed it; 0: none; also 0 for the time limit, denied and cancelled
  Limit limit = Limit::none;  ///< the limit that ended it, or that it hit before it failed by itself
  Stream out, err;            ///< captured output; empty unless StreamMode::capture
  Usage usage;
  std::vector<Denial> denials;
  std::vector<Violation> violations;
  std::optional<Escape> escape;
  std::vector<FileRequest> files;  ///< only in a learning run (Request::learn)
  std::vector<HostRequest> hosts;  ///< only in a learning run
  /// The layers in force: "seccomp" -> "allowlist, 312 calls", "cgroup" -> "missing: ...".
  std::map<std::string, std::string> layers;
  std::vector<std::string> warnings;   ///< weakened or missing protections
  std::vector<std::string> notices;    ///< messages for the user: discarded changes, masked files
  std::vector<StateChange> lifecycle;  ///< in chronological order
  std::optional<Error> error;          ///< when outcome is setup_failed or denied
};

/// The exit status for this result: the program's own; 124 time limit; 125 caisson could not or refused to run it, or
/// killed it after an escape attempt; 126 not executable; 127 not found; 128+n killed by signal n; another limit: the
/// program's own status if it is not 0, else 128+n, 137 by default; 143 cancelled. `caisson run` itself exits with 125
/// instead of 0 if output was lost.
int exitStatus(const RunResult& result);

/// Where the payload's standard streams go.
enum class StreamMode : std::uint8_t {
  capture,  ///< into RunResult, truncated at the output limit
  relay,    ///< to the caller's descriptor of the same number: handed over where it is a file, pipe or UNIX socket,
            ///< else copied through a pipe or pty. Not truncated unless Request::limit_relayed_output
  discard,
};

struct Request {
  Policy policy;
  std::vector<std::string> command;  ///< argv; the program is looked up inside the sandbox
  StreamMode out = StreamMode::capture;
  StreamMode err = StreamMode::capture;
  /// The payload gets `input` and then the caller's standard input; without `input`, the descriptor itself where that
  /// is a file, pipe or UNIX socket. False: `input`, then end of file.
  bool relay_stdin = false;
  std::string input;
  bool limit_relayed_output = false;  ///< truncate relayed output at the policy's limit, unless it is a terminal
  bool interactive = false;           ///< if relayed input is a terminal: a pty for each relayed terminal of 0, 1, 2
  /// Forwards INT, TERM, HUP, QUIT, USR1, USR2 to the payload; WINCH resizes its pty. Kills the run 10 s after TERM or
  /// HUP, and at the third of INT, TERM, HUP, QUIT.
  bool forward_signals = false;
  /// If only the user's service manager can provide a cgroup, moves this process into a new scope of it. For
  /// command-line programs.
  bool own_scope = false;
  /// The path of the caisson program, which network mode proxy starts again; empty: the installed one.
  std::string program;
  /// Called by run() before the program starts, with a line about what the sandbox does not show.
  std::function<void(const std::string& line)> on_notice;
  /// Called while a search of the workspace takes longer than a second, with a line about it.
  std::function<void(const std::string& line)> on_progress;
  int cancel_descriptor = -1;          ///< when it becomes readable, the run is killed with outcome `cancelled`
  std::vector<std::string> approvals;  ///< what the owner approved for this run, e.g. "level:none"
  std::string tool;                    ///< the declared tool that this run executes, for the quarantine; or empty
  bool quarantine = true;              ///< quarantine the tool or command after an escape attempt
  /// Records what the payload accesses, and reports calls that are denied only because no list of the policy contains
  /// them. Allows nothing more; file system calls are slower.
  bool learn = false;
  /// Overwrites the environment variables of this process that network.credentials names, once they are read. Later
  /// runs of this process do not find them. For command-line programs.
  bool forget_secrets = false;
};

/// Runs the command and waits until it ends. Returns an error only if the request is invalid: no command, a bad policy,
/// a missing approval, a denied path that does not exist and cannot be masked. A command that the policy denies gives
/// outcome `denied`; a host that lacks a feature, or a sandbox that could not be built, gives `setup_failed`.
Result<RunResult> run(const Request& request);

/// Describes the plan that run() would carry out for the same request, without running anything. Request::own_scope has
/// its effect, since limits depend on the cgroup. `json` selects JSON instead of text. A denied command and a missing
/// feature of the host are errors here.
Result<std::string> describePlan(const Request& request, bool json);

}  // namespace caisson
