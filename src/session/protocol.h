// Messages between the clients of a session (`session exec`, MCP, a program that links the library) and its supervisor.
//
// The supervisor listens on a SOCK_SEQPACKET socket in the session's private directory. Only processes of the session's
// owner can open that directory, and the supervisor also checks who connected. A message is a header, a value encoded
// by codec.h, and descriptors; a value that is too long for one message travels in a memory file.
//
//   client                              supervisor
//     connect                     -->
//                                 <--   welcome
//     exec, streams               -->
//     signal (any time)           -->
//                                 <--   started (interactive and background commands)
//                                 <--   finished
//
// Client and supervisor may be of different versions: a session keeps its supervisor when caisson is upgraded. Every
// message states which versions of the protocol its sender speaks, and both use the newest one that both speak. What a
// new version may change: append members to a structure, append enumerators, add message types. It raises
// kNewestProtocol, and uses the addition only if the common version has it. Anything else raises kOldestProtocol, too:
// sessions of earlier versions are then refused until their user stops them. So that this is always possible, the
// header, the numbers of `welcome`, `settle`, `done` and `failed`, and the members of their values never change.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/run.h"
#include "session/codec.h"
#include "sys/fd.h"

namespace caisson::session {

/// The versions of the messages below, of the egress's socket and of the files that a session's clients and supervisor
/// share. 8: the first with a range.
inline constexpr std::uint8_t kOldestProtocol = 8, kNewestProtocol = 8;

struct ProtocolRange {
  std::uint8_t oldest = 0, newest = 0;

  friend bool operator==(const ProtocolRange&, const ProtocolRange&) = default;
};

/// The versions that this program speaks. Tests link another one (protocol_range.cc).
ProtocolRange ownProtocols();
/// The newest version of both ranges; nothing if they have none in common.
std::optional<std::uint8_t> commonProtocol(ProtocolRange one, ProtocolRange other);
/// "version 8", "versions 8 to 9"
std::string describe(ProtocolRange range);

/// The numbers are part of the protocol.
enum class MessageType : std::uint32_t {
  // from the client
  start = 0,    ///< StartOptions: builds the sandbox, the caller holding the session's lock -> done with Welcome
  exec,         ///< CommandOptions, and for a foreground command descriptors 0, 1, 2 -> started, finished or failed
  signal,       ///< SignalOptions, to a background command or the one of this connection -> done (background)
  take_input,   ///< CommandNumber -> done with the write end of the command's standard input
  close_input,  ///< CommandNumber -> done
  workspace,    ///< -> done with the workspace's directory
  view,  ///< -> done with FileView: the root directory as commands see it, and their Landlock rules if they have any
  release_workspace,  ///< the client closed these directories; no answer
  renew,              ///< Seconds: the session ends that long from now -> done
  settle,             ///< SettleOptions: ends the sandbox -> done, or failed with EBUSY
  open_port,          ///< PortOptions -> done with the host's port
  close_port,         ///< PortOptions -> done
  reload,             ///< read meta.json again -> done
  processes,          ///< -> done with ProcessList: processes that no running command accounts for
  signal_left,        ///< SignalOptions, to those processes -> done with ProcessList: the processes
  freeze,             ///< begins a new upper layer, the caller holding the session's lock -> done, or failed with EBUSY
  // from the supervisor to its launcher (supervisor/launcher.h)
  // A request that is answered has a socket for its reply as its last descriptor.
  remount = 100,  ///< OverlayOptions, pidfd of pid 1, a layer -> done or failed
  mask,           ///< MaskTarget, pidfd of pid 1, a pipe that gets the answer: a byte per path, 0 or an errno
  measure,        ///< MeasureOptions, a directory, a pipe that gets a ClosedReport
  set_mode,       ///< the mode, an object, the sandbox's user namespace -> done with the errno
  alert,          ///< a text for the owner's alert programs -> done with what did not work
  squash,         ///< SquashRequest; no answer
  keep_port,      ///< PortOptions, its lock and its listener, for the next supervisor; no answer
  restart,        ///< StartOptions, the listening socket, a client: forks the next supervisor; no answer
  // from the supervisor
  welcome = 200,  ///< Welcome
  started,        ///< StartedCommand, and the master side of the pty of an interactive command
  finished,       ///< RunResult without its streams
  done,           ///< the answer's value
  failed,         ///< Error
};

struct Welcome {
  std::string version;  ///< of the supervisor's caisson
  bool sandbox_runs = false;
  bool review_first = false;  ///< approvals of hosts must be checked before a command (Session::reviewHosts)
  bool passes_whole_environment = false;  ///< send every variable with a command, else only `pass`
  std::vector<std::string> pass;
  std::uint64_t output_bytes = 0;  ///< limit of each stream
  std::uint32_t payload_id = 0;    ///< of a root caller's session: owner of the command's pipes
};

struct StartOptions {
  std::map<std::string, std::string> secrets;  ///< variables that network.credentials name
};

struct TerminalOptions {
  bool stream[3] = {false, false, false};  ///< which of 0, 1 and 2 are the command's terminal
  std::uint16_t rows = 24, columns = 80;
};

struct CommandOptions {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;         ///< added to the policy's
  std::map<std::string, std::string> caller_environment;  ///< passed by the policy
  std::string working_directory;
  std::optional<double> timeout_seconds;
  bool background = false;
  bool default_timeout = false;  ///< background: without timeout_seconds the policy's applies
  bool keep_input = false;       ///< background: standard input is a pipe for take_input, and `input` is ignored
  std::string input;             ///< background: standard input
  bool interactive = false;      ///< on a user's terminal: TERM is set, and there is no default time limit
  bool wants_started = false;    ///< a foreground command is answered with `started`, too
  TerminalOptions terminal;
  std::string notice;  ///< of the client, for the result
};

struct CommandNumber {
  std::uint32_t number = 0;
};

struct SignalOptions {
  std::uint32_t command = 0;  ///< number of a background command; 0: the command of this connection
  std::int32_t signal = 0;
  bool whole_tree = false;  ///< else its process group
};

struct SettleOptions {
  bool stop_processes = false;  ///< kill what runs; else EBUSY when anything does
  bool end_supervisor = false;  ///< also close all ports and exit
};

struct SquashRequest {
  bool reclaim = false;  ///< merge whenever there are two layers, else only deep histories
};

struct PortOptions {
  std::uint16_t port = 0;       ///< inside the sandbox
  std::uint16_t host_port = 0;  ///< on the host's loopback
  bool inward = false;  ///< the sandbox connects to a port of the host; else the host connects to one of the sandbox
};

struct StartedCommand {
  std::uint32_t number = 0;  ///< of a background command
  std::int32_t pid = 0;      ///< inside the sandbox
};

struct Seconds {
  double value = 0;
};

struct LeftProcess {
  std::int32_t pid = 0;     ///< on the host
  std::uint64_t start = 0;  ///< sys::processStart
  std::string program;
};
struct ProcessList {
  std::vector<LeftProcess> processes;
};

/// The answer to `view`.
struct FileView {
  std::string workspace;  ///< its path inside
};

struct Nothing {};

/// A received message.
struct Packet {
  ProtocolRange sender;
  MessageType type = MessageType::done;
  std::string value;
  std::vector<sys::Fd> descriptors;
};

inline constexpr std::size_t kMaxPacketDescriptors = 4;

/// Sends one message with at most kMaxPacketDescriptors descriptors, else EMSGSIZE. Returns 0 or an errno
/// (EPIPE: the peer is gone; EAGAIN: its buffer is full and `wait` is false; ETOOMANYREFS: too many descriptors of this
/// user are in flight; ENOMEM: no memory file for a long value).
int sendPacket(int socket, MessageType type, const std::string& value, std::vector<int> descriptors = {},
               bool wait = true);

/// What receivePacket() found: a message, nothing yet, the end of the connection, or a message whose sender speaks no
/// version of the protocol that we speak.
enum class Receipt : std::uint8_t { message, nothing, closed, other_version };
/// Receives one message; does not block. A malformed message and a socket error count as `closed`.
Receipt receivePacket(int socket, Packet& packet);

// --- codec.h ---

template <class T, class Type>
concept Of = std::is_same_v<std::remove_const_t<T>, Type>;

template <class A, Of<Welcome> T>
void fields(A& archive, T& v) {
  auto& [version, runs, review, whole, pass, output_bytes, payload_id] = v;
  archive(version, runs, review, whole, pass, output_bytes, payload_id);
}
template <class A, Of<StartOptions> T>
void fields(A& archive, T& v) {
  archive(v.secrets);
}
template <class A, Of<TerminalOptions> T>
void fields(A& archive, T& v) {
  archive(v.stream[0], v.stream[1], v.stream[2], v.rows, v.columns);
}
template <class A, Of<CommandOptions> T>
void fields(A& archive, T& v) {
  auto& [command, environment, caller, directory, timeout, background, default_timeout, keep_input, input, interactive,
         wants_started, terminal, notice] = v;
  archive(command, environment, caller, directory, timeout, background, default_timeout, keep_input, input,
          interactive);
  archive(wants_started, terminal, notice);
}
template <class A, Of<CommandNumber> T>
void fields(A& archive, T& v) {
  archive(v.number);
}
template <class A, Of<SignalOptions> T>
void fields(A& archive, T& v) {
  auto& [command, signal, whole_tree] = v;
  archive(command, signal, whole_tree);
}
template <class A, Of<SettleOptions> T>
void fields(A& archive, T& v) {
  auto& [stop, end] = v;
  archive(stop, end);
}
template <class A, Of<SquashRequest> T>
void fields(A& archive, T& v) {
  archive(v.reclaim);
}
template <class A, Of<PortOptions> T>
void fields(A& archive, T& v) {
  auto& [port, host_port, inward] = v;
  archive(port, host_port, inward);
}
template <class A, Of<StartedCommand> T>
void fields(A& archive, T& v) {
  auto& [number, pid] = v;
  archive(number, pid);
}
template <class A, Of<Seconds> T>
void fields(A& archive, T& v) {
  archive(v.value);
}
template <class A, Of<LeftProcess> T>
void fields(A& archive, T& v) {
  auto& [pid, start, program] = v;
  archive(pid, start, program);
}
template <class A, Of<ProcessList> T>
void fields(A& archive, T& v) {
  archive(v.processes);
}
template <class A, Of<FileView> T>
void fields(A& archive, T& v) {
  archive(v.workspace);
}
template <class A, Of<Nothing> T>
void fields(A&, T&) {}

}  // namespace caisson::session

namespace caisson {

// In the namespace of the types, so that codec.h finds them.
template <class A, session::Of<Error> T>
void fields(A& archive, T& v) {
  auto& [stage, call, object, sys_errno, reason, hint, code, others] = v;
  static_cast<void>(others);  // only files that a client reads have several
  archive(stage, call, object, sys_errno, reason, hint, code);
}
template <class A, session::Of<Usage> T>
void fields(A& archive, T& v) {
  auto& [wall, user, system, peak, read, written, processes, bytes, connections, denied] = v;
  archive(wall, user, system, peak, read, written, processes, bytes, connections, denied);
}
template <class A, session::Of<Denial> T>
void fields(A& archive, T& v) {
  auto& [rule, object, operation, remedy, count, probe] = v;
  archive(rule, object, operation, remedy, count, probe);
}
template <class A, session::Of<Violation> T>
void fields(A& archive, T& v) {
  archive(v.rule, v.object, v.operation, v.remedy, v.count, v.probe);
  archive(v.syscall, v.architecture, v.number, v.pid, v.program, v.severity, v.indicator, v.error);
  for (auto& argument : v.arguments) archive(argument);
}
template <class A, session::Of<Escape> T>
void fields(A& archive, T& v) {
  auto& [indicator, severity, reason, rollback, quarantined, trace] = v;
  archive(indicator, severity, reason, rollback, quarantined, trace);
}
/// The supervisor's part of a result; streams, files and hosts stay empty.
template <class A, session::Of<RunResult> T>
void fields(A& archive, T& v) {
  archive(v.sandbox_id, v.outcome, v.exit_code, v.signal, v.limit, v.usage, v.denials, v.violations, v.escape);
  archive(v.layers, v.warnings, v.notices, v.error);
}

}  // namespace caisson
