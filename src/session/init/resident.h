// pid 1 of a session: a program of its own without a C library, so that an idle session costs a few pages.
//
// It holds the sandbox's namespaces, starts commands when asked over its socket, reaps, moves background output into
// logs of bounded size, keeps the time, and ends with the session's time. It has no capability, no environment, no file
// of the host but the session's own socket, lock and logs, and cannot be traced, read or seen by what it starts.
#pragma once

#include <cstdint>

#include "isolation/block.h"
#include "session/protocol.h"
#include "sys/raw_syscall.h"

namespace caisson::session {

using sys::raw;

inline constexpr int kMaxCommands = 128;
inline constexpr int kMaxClients = 128;

/// A command that runs, or whose background output still comes.
struct Command {
  bool used;
  bool background;
  bool ended;
  bool timed_out;
  std::uint32_t number;  ///< as the asking process calls it
  int pid;
  int client;    ///< index of the connection that waits, or -1
  int input;     ///< write end of its standard input, kept for others
  int pipes[2];  ///< read ends of its output
  int logs[2];
  int record;
  std::uint64_t limit, written[2], dropped[2];
  std::int64_t started_ms, deadline_ms;  ///< 0: none
  std::int64_t cpu_ms, cpu_look_ms;      ///< its limit, 0: none; when to look next
  std::uint32_t limit_reached;           ///< caisson::Limit, other than time
};

struct Client {
  int descriptor;  ///< -1: free
};

template <class T>
struct Part {
  T *first, *last;
  T* begin() const { return first; }
  T* end() const { return last; }
};

struct State {
  Command commands[kMaxCommands];
  Client clients[kMaxClients];
  int command_bound, client_bound;  ///< above these all are free: an idle session does not look at them
  int listener, signals, workspace;
  std::int64_t end_ms;
  const char* const* sized;  ///< paths of its directories in memory
  int sized_count;
  unsigned owner;  ///< the uid of who may ask, as it shows in this user namespace

  Part<Command> inUse() { return {commands, commands + command_bound}; }
};

std::int64_t nowMs();
void closeDescriptor(int& descriptor);

/// Signals every process that descends from `root`, shares its session or its process group. With SIGKILL nothing forks
/// away: all are stopped first.
void signalTree(int root, int signal);
/// CPU time of all processes that descend from `root`, and of those they waited for.
std::int64_t cpuOfTree(int root);
/// Ends every process but this one.
void endEverything();
/// Whether any process but this one is alive in the pid namespace.
bool anythingRuns();

// commands.cc
Command* findCommand(State& state, std::uint32_t number);
/// Starts what the request asks for; the error (positive), or 0. Takes over the descriptors it keeps.
/// What goes back to who asked: the terminal's other end, and the listener of the command's filter.
int startCommand(State& state, const Request& request, int client, int* descriptors, int count, Reply& reply,
                 int* terminal_master, int* listener);
/// Takes 0, 1 and 2, so that no connection gets one of the numbers that become a payload's standard streams.
void takeStandardNumbers();
/// Reaps all that ended.
void reapAll(State& state);
/// Moves output of a background command from pipe to log.
void pump(Command& command, int stream);
void enforceDeadlines(State& state);
/// Frees it when nothing more can come.
void releaseIfDone(Command& command);

// clients.cc
void reply(int descriptor, const Reply& reply, int with_descriptor = -1, int and_another = -1);
void acceptClient(State& state);
void serveClient(State& state, int index);

}  // namespace caisson::session
