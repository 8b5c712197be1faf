#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>

#include "isolation/child.h"
#include "session/init/resident.h"

namespace caisson::session {
namespace {

State state;

[[noreturn]] void leave(int status) {
  for (;;) raw(SYS_exit_group, status);
}

[[noreturn]] void refuse(const char* call, const char* object, long error) {
  isolation::Block block{};
  block.control = kControlDescriptor;
  isolation::reportAndExit(block, Stage::launch, call, object, error < 0 ? -error : error);
}

/// The process that starts the sandbox records it before anybody may use it; if it dies before that, so does this one.
std::int64_t announce() {
  Reply ready;
  ready.say = Say::ready;
  reply(kControlDescriptor, ready);
  Request go;
  const long got = raw(SYS_recvfrom, kControlDescriptor, &go, sizeof(go), 0, nullptr, nullptr);
  if (got != static_cast<long>(sizeof(go)) || go.protocol != kProtocol || go.ask != Ask::renew) leave(125);
  raw(SYS_close, kControlDescriptor);
  return nowMs() + go.milliseconds;
}

/// The next moment something has to end, in milliseconds from now.
std::int64_t untilNextDeadline() {
  std::int64_t next = state.end_ms;
  for (const Command& command : state.inUse()) {
    if (command.used && !command.ended && command.deadline_ms != 0 && command.deadline_ms < next) {
      next = command.deadline_ms;
    }
    if (command.used && !command.ended && command.cpu_ms != 0 && command.cpu_look_ms < next) {
      next = command.cpu_look_ms;
    }
  }
  const std::int64_t left = next - nowMs();
  return left < 0 ? 0 : left;
}

pollfd polls[2 + kMaxClients + 2 * kMaxCommands];

void lowerBounds() {
  while (state.command_bound > 0 && !state.commands[state.command_bound - 1].used) --state.command_bound;
  while (state.client_bound > 0 && state.clients[state.client_bound - 1].descriptor < 0) --state.client_bound;
}

void turn() {
  lowerBounds();
  const int clients = state.client_bound, pipes = 2 * state.command_bound;
  int count = 0;
  const auto add = [&](int descriptor) {
    polls[count].fd = descriptor;
    polls[count].events = POLLIN;
    polls[count].revents = 0;
    return count++;
  };
  add(state.signals);
  add(state.listener);
  int client_slots[kMaxClients];
  for (int i = 0; i < clients; ++i) {
    client_slots[i] = state.clients[i].descriptor >= 0 ? add(state.clients[i].descriptor) : -1;
  }
  int pipe_slots[2 * kMaxCommands];
  for (int i = 0; i < pipes; ++i) {
    const Command& command = state.commands[i / 2];
    pipe_slots[i] = command.used && command.pipes[i % 2] >= 0 ? add(command.pipes[i % 2]) : -1;
  }
  const std::int64_t left = untilNextDeadline();
  const long time[2] = {static_cast<long>(left / 1000), static_cast<long>(left % 1000 * 1000000)};
  const long ready = raw(SYS_ppoll, polls, count, time, nullptr, 0);
  if (ready < 0 && ready != -EINTR) leave(125);  // without eyes nothing may go on running
  enforceDeadlines(state);
  if (ready <= 0) return;
  if (polls[0].revents != 0) {
    char info[128];
    raw(SYS_read, state.signals, info, sizeof(info));
    reapAll(state);
  }
  for (int i = 0; i < pipes; ++i) {
    if (pipe_slots[i] < 0 || polls[pipe_slots[i]].revents == 0) continue;
    pump(state.commands[i / 2], i % 2);
    releaseIfDone(state.commands[i / 2]);
  }
  for (int i = 0; i < clients; ++i) {
    if (client_slots[i] >= 0 && polls[client_slots[i]].revents != 0) serveClient(state, i);
  }
  if (polls[1].revents != 0) acceptClient(state);
}

}  // namespace

/// argv: name, the workspace's path inside, the owner's uid as it shows inside, then directories in memory.
extern "C" [[noreturn]] void residentMain(const long* stack) {
  const auto* const* argv = reinterpret_cast<const char* const*>(stack + 1);
  // An exec makes a process readable again; nothing of the payload's runs yet.
  if (const long hidden = raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); hidden < 0) refuse("prctl", "dumpable", hidden);
  takeStandardNumbers();
  const std::uint64_t all = ~0ULL;
  raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, nullptr, 8);
  const std::uint64_t child = 1ULL << (SIGCHLD - 1);
  const long signals = raw(SYS_signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
  if (signals < 0) refuse("signalfd4", "", signals);
  const long workspace =
      stack[0] < 3 ? -EINVAL : raw(SYS_openat, AT_FDCWD, argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (workspace < 0) refuse("open", stack[0] < 3 ? "" : argv[1], workspace);
  for (const char* digit = argv[2]; *digit != 0; ++digit) {
    state.owner = state.owner * 10 + static_cast<unsigned>(*digit - '0');
  }
  for (int descriptor = kControlDescriptor; descriptor < kControlDescriptor + kResidentDescriptors; ++descriptor) {
    raw(SYS_fcntl, descriptor, F_SETFD, FD_CLOEXEC);
  }
  state.signals = static_cast<int>(signals);
  state.workspace = static_cast<int>(workspace);
  state.listener = kListenerDescriptor;
  state.sized = argv + 3;
  state.sized_count = static_cast<int>(stack[0]) - 3;
  for (Client& client : state.clients) client.descriptor = -1;
  state.end_ms = announce();
  for (;;) turn();
}

}  // namespace caisson::session
