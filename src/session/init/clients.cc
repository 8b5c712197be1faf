// The processes that use the session: who may ask, and what they ask for.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

#include "isolation/system_v.h"
#include "session/init/resident.h"

namespace caisson::session {
namespace {

constexpr int kMaxDescriptors = 5;

struct Credentials {
  int pid;
  unsigned uid, gid;
};

/// Only the session's owner outside may ask. A process of this pid namespace has a number here, one outside has none.
bool mayAsk(int descriptor, unsigned owner) {
  Credentials peer{};
  unsigned size = sizeof(peer);
  if (raw(SYS_getsockopt, descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) return false;
  return peer.pid == 0 && peer.uid == owner;
}

void dropClient(State& state, int index) {
  for (Command& command : state.commands) {
    if (!command.used || command.client != index) continue;
    // Nobody is left who holds this command, and what it left behind, to the session's limits.
    command.client = -1;
    signalTree(command.pid, SIGKILL);
    bool alone = true;
    for (const Command& other : state.commands) alone = alone && (&other == &command || !other.used || other.ended);
    if (alone) endEverything();
  }
  closeDescriptor(state.clients[index].descriptor);
}

int receive(int descriptor, Request& request, int* descriptors, int& count) {
  iovec io{&request, sizeof(request)};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  const long got = raw(SYS_recvmsg, descriptor, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  count = 0;
  if (got > 0 && header.msg_controllen >= sizeof(cmsghdr)) {
    const auto* part = reinterpret_cast<const cmsghdr*>(room);
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      const int* slots = reinterpret_cast<const int*>(CMSG_DATA(part));
      for (int i = 0; i < count; ++i) descriptors[i] = slots[i];
    }
  }
  if (got == -EAGAIN || got == -EINTR) return EAGAIN;
  if (got != static_cast<long>(sizeof(request)) || request.protocol != kProtocol) return EPROTO;
  return 0;
}

void list(State& state, int descriptor) {
  for (const Command& command : state.commands) {
    if (!command.used || command.ended) continue;
    Reply entry;
    entry.say = Say::entry;
    entry.exec = command.number;
    entry.pid = command.pid;
    entry.value = command.background ? 1 : 0;
    reply(descriptor, entry);
  }
}

/// The error, positive, or 0. May put a descriptor to send into `attached`; the others are closed by the caller.
int answer(State& state, const Request& request, int client, int* descriptors, int count, Reply& say, int& attached,
           bool& attached_is_ours, int& listener) {
  const int descriptor = state.clients[client].descriptor;
  switch (request.ask) {
    case Ask::hello:
      say.say = Say::welcome;
      attached = state.workspace;
      attached_is_ours = false;
      return 0;
    case Ask::execute:
    case Ask::background: return startCommand(state, request, client, descriptors, count, say, &attached, &listener);
    case Ask::signal: {
      const Command* command = findCommand(state, request.exec);
      if (command == nullptr) return ESRCH;
      if (request.signal < 0 || request.signal > 64) return EINVAL;
      if (request.flags != 0) {
        if (raw(SYS_kill, -command->pid, request.signal) < 0) raw(SYS_kill, command->pid, request.signal);
      } else {
        signalTree(command->pid, request.signal);
      }
      return 0;
    }
    case Ask::go: return EPROTO;
    case Ask::list: list(state, descriptor); return 0;
    case Ask::take_input: {
      const Command* command = findCommand(state, request.exec);
      if (command == nullptr) return ESRCH;
      if (command->input < 0) return EPIPE;
      attached = command->input;
      attached_is_ours = false;
      return 0;
    }
    case Ask::close_input: {
      Command* command = findCommand(state, request.exec);
      if (command == nullptr) return ESRCH;
      closeDescriptor(command->input);
      return 0;
    }
    case Ask::renew: state.end_ms = nowMs() + request.milliseconds; return 0;
    case Ask::quiesce:
    case Ask::end:
      reapAll(state);
      if (request.ask == Ask::quiesce && anythingRuns()) return EBUSY;
      reply(descriptor, say);
      for (;;) raw(SYS_exit_group, 0);
    case Ask::socket: {
      const long made = raw(SYS_socket, request.signal, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (made < 0) return static_cast<int>(-made);
      attached = static_cast<int>(made);
      return 0;
    }
    case Ask::sized: {
      if (request.exec >= static_cast<std::uint32_t>(state.sized_count)) return ENOENT;
      const char* path = state.sized[request.exec];
      const long opened = raw(SYS_openat, AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
      if (opened < 0) return static_cast<int>(-opened);
      attached = static_cast<int>(opened);
      return 0;
    }
    case Ask::measure:
      say.amount = isolation::systemVBytes();
      say.value = anythingRuns() ? 1 : 0;
      return 0;
    case Ask::enforce:
      for (Command& command : state.commands) {
        if (command.used && !command.ended) command.limit_reached = static_cast<std::uint32_t>(request.signal);
      }
      endEverything();
      return 0;
  }
  return EPROTO;
}

}  // namespace

void reply(int descriptor, const Reply& message, int with_descriptor, int and_another) {
  iovec io{const_cast<Reply*>(&message), sizeof(message)};
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  auto* part = reinterpret_cast<cmsghdr*>(room);
  int* slots = reinterpret_cast<int*>(CMSG_DATA(part));
  unsigned count = 0;
  if (with_descriptor >= 0) slots[count++] = with_descriptor;
  if (and_another >= 0) slots[count++] = and_another;
  if (count > 0) {
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
  }
  // Never waits: who does not read its answers loses them.
  raw(SYS_sendmsg, descriptor, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void acceptClient(State& state) {
  const long accepted = raw(SYS_accept4, state.listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (accepted < 0) return;
  int descriptor = static_cast<int>(accepted);
  if (!mayAsk(descriptor, state.owner)) return closeDescriptor(descriptor);
  for (int i = 0; i < kMaxClients; ++i) {
    if (state.clients[i].descriptor >= 0) continue;
    state.clients[i].descriptor = descriptor;
    if (state.client_bound <= i) state.client_bound = i + 1;
    return;
  }
  closeDescriptor(descriptor);
}

void serveClient(State& state, int index) {
  const int descriptor = state.clients[index].descriptor;
  Request request;
  int descriptors[kMaxDescriptors] = {-1, -1, -1, -1, -1};
  int count = 0;
  const int received = receive(descriptor, request, descriptors, count);
  if (received == EAGAIN) return;
  if (received != 0) {
    for (int& one : descriptors) closeDescriptor(one);
    return dropClient(state, index);
  }
  if (request.ask == Ask::go) {  // the command did not wait for it
    for (int& one : descriptors) closeDescriptor(one);
    return;
  }
  Reply say;
  say.exec = request.exec;
  int attached = -1;
  bool attached_is_ours = true;
  int listener = -1;
  const int error = answer(state, request, index, descriptors, count, say, attached, attached_is_ours, listener);
  for (int& one : descriptors) closeDescriptor(one);
  if (error != 0) {
    say.say = Say::refused;
    say.value = error;
  }
  reply(descriptor, say, error == 0 ? attached : -1, error == 0 ? listener : -1);
  closeDescriptor(listener);  // who asked has it, or nobody: then every call that it would be told of fails
  if (attached_is_ours) closeDescriptor(attached);
}

}  // namespace caisson::session
