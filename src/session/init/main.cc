#include <fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

#include "isolation/system_v.h"
#include "session/init/init.h"

namespace caisson::session {
namespace {

constexpr int kMaxDescriptors = kSpawnDescriptors + kMaxCgroups;
constexpr long kFirstPauseNs = 200'000, kMaxPauseNs = 20'000'000;

State state;

[[noreturn]] void leave(int status) {
  for (;;) raw(SYS_exit_group, status);
}

[[noreturn]] void failStart(const char* call, const char* object, long error) {
  isolation::Block block{};
  block.control = kControlDescriptor;
  isolation::reportAndExit(block, Stage::launch, call, object, error < 0 ? -error : error);
}

/// Returns the number of bytes, or a negative errno; sets the received descriptors.
long receive(InitRequest& request, int* descriptors, int& count) {
  iovec io{&request, sizeof(request)};
  alignas(cmsghdr) char room[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  const long got = raw(SYS_recvmsg, kControlDescriptor, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  count = 0;
  if (got > 0 && header.msg_controllen >= sizeof(cmsghdr)) {
    const auto* part = reinterpret_cast<const cmsghdr*>(room);
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
      count = static_cast<int>((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      const int* slots = reinterpret_cast<const int*>(CMSG_DATA(part));
      for (int i = 0; i < count; ++i) descriptors[i] = slots[i];
    }
  }
  return got;
}

void sendSocket(const InitRequest& request) {
  InitReply reply;
  reply.type = InitReplyType::descriptor;
  reply.command = request.command;
  const long made = raw(SYS_socket, request.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  reply.error = made < 0 ? static_cast<int>(-made) : 0;
  sendReply(reply, made < 0 ? -1 : static_cast<int>(made));
  if (made >= 0) raw(SYS_close, made);
}

void sendListener(const InitRequest& request) {
  InitReply reply;
  reply.type = InitReplyType::descriptor;
  reply.command = request.command;
  sendReply(reply, request.descriptor);
  if (request.descriptor > kAliveDescriptor) raw(SYS_close, request.descriptor);
}

/// Ends the spawning thread, which then replies `paused`, if no other process runs; else replies EBUSY. Only pid 1 can
/// check reliably that it is alone: reading /proc from outside is not atomic.
void pauseIfAlone() {
  reapAll(state);
  state.pausing = !state.newborn.pending && raw(SYS_kill, -1, 0) == -ESRCH;
  if (state.pausing) return;  // the reply follows when the thread exits
  InitReply reply;
  reply.type = InitReplyType::paused;
  reply.error = EBUSY;
  sendReply(reply);
}

void serve() {
  InitRequest request;
  int descriptors[kMaxDescriptors];
  for (int& descriptor : descriptors) descriptor = -1;
  int count = 0;
  const long got = receive(request, descriptors, count);
  if (got == -EAGAIN || got == -EINTR) return;
  // Without a supervisor the session's limits are not enforced: pid 1 exits, and the kernel kills the namespace.
  if (got != static_cast<long>(sizeof(request)) || request.protocol != kInitProtocol) leave(125);
  switch (request.type) {
    case InitRequestType::enter: break;  // only while paused
    case InitRequestType::pause: pauseIfAlone(); break;
    case InitRequestType::spawn: spawn(state, request, descriptors, count); break;
    case InitRequestType::close:
      if (request.descriptor > kAliveDescriptor) raw(SYS_close, request.descriptor);
      break;
    case InitRequestType::send_listener: sendListener(request); break;
    case InitRequestType::kill_newborn:
      if (state.newborn.pending) raw(SYS_kill, state.newborn.pid, SIGKILL);
      break;
    case InitRequestType::signal: signalCommand(state, request.command, request.signal); break;
    case InitRequestType::kill_all: raw(SYS_kill, -1, SIGKILL); break;
    case InitRequestType::socket: sendSocket(request); break;
    case InitRequestType::measure: {
      InitReply reply;
      reply.type = InitReplyType::measured;
      reply.ipc_bytes = isolation::systemVBytes();
      sendReply(reply);
      break;
    }
  }
  for (int descriptor : descriptors) {
    if (descriptor >= 0) raw(SYS_close, descriptor);
  }
}

/// The spawning thread enters the Landlock domain of the last `enter` request, before its first command. Returns the
/// descriptor of its rules, or -1.
int enterDomain() {
  const long mapped = mapBlock(state.domain, state.domain_block);
  if (mapped < 0) failStart("mmap", "Landlock rules", mapped);
  auto& block = *reinterpret_cast<isolation::Block*>(mapped);
  block.control = kControlDescriptor;
  int ruleset = -1;
  isolation::restrictWithLandlock(block, &ruleset);
  guardThread(block);
  raw(SYS_munmap, mapped, state.domain.bytes);
  raw(SYS_close, state.domain_block);
  return ruleset;
}

void turn() {
  static long pause = kFirstPauseNs;
  bool unsent = false;
  for (int i = 0; i < state.command_bound; ++i) unsent = unsent || (state.commands[i].used && state.commands[i].exited);
  pollfd polls[2] = {{state.signals, POLLIN, 0},
                     {kControlDescriptor, static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0}};
  // A newborn's exec raises no event: poll, with growing intervals.
  const bool waiting = state.newborn.pending;
  const long time[2] = {0, pause};
  const long ready = raw(SYS_ppoll, polls, 2, waiting ? time : nullptr, nullptr, 0);
  if (ready < 0 && ready != -EINTR) leave(125);
  pause = !waiting ? kFirstPauseNs : pause * 2 < kMaxPauseNs ? pause * 2 : kMaxPauseNs;
  finishNewborn(state);
  if (ready <= 0) return;
  if (polls[0].revents != 0) {
    char info[128];
    raw(SYS_read, state.signals, info, sizeof(info));
    reapAll(state);
  }
  if ((polls[1].revents & POLLOUT) != 0) sendExits(state);
  if ((polls[1].revents & ~POLLOUT) != 0) serve();
}

alignas(64) char loop_stack[64 * 1024];

[[noreturn]] void runLoop() {
  const int ruleset = enterDomain();
  InitReply reply;
  reply.type = InitReplyType::entered;
  sendReply(reply, ruleset);
  isolation::closeFd(ruleset);
  reapAll(state);
  while (!state.pausing) turn();
  reply.type = InitReplyType::paused;
  sendReply(reply);
  for (;;) raw(SYS_exit, 0);
}

/// Waits for the next `enter` request, in pid 1's first thread, which is in no domain. No command runs meanwhile.
void awaitDomain() {
  state.pausing = false;
  for (;;) {
    pollfd wait{kControlDescriptor, POLLIN, 0};
    const long ready = raw(SYS_ppoll, &wait, 1, nullptr, nullptr, 0);
    if (ready < 0 && ready != -EINTR) leave(125);
    int descriptors[kMaxDescriptors];
    int count = 0;
    const long got = receive(state.domain, descriptors, count);
    if (got == -EAGAIN || got == -EINTR) continue;
    const bool whole = got == static_cast<long>(sizeof(state.domain)) && state.domain.protocol == kInitProtocol;
    if (!whole || state.domain.type != InitRequestType::enter || count != 1) leave(125);
    state.domain_block = descriptors[0];
    return;
  }
}

}  // namespace

int sendReply(const InitReply& message, int descriptor) {
  iovec io{const_cast<InitReply*>(&message), sizeof(message)};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    auto* part = reinterpret_cast<cmsghdr*>(room);
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(sizeof(int));
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    *reinterpret_cast<int*>(CMSG_DATA(part)) = descriptor;
  }
  const long sent = raw(SYS_sendmsg, kControlDescriptor, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == -EAGAIN || sent == -EINTR) return EAGAIN;
  if (sent < 0 && descriptor >= 0) {
    // The supervisor gets the error instead of the descriptor: too many of this user are in flight, or it is closed.
    InitReply failed = message;
    failed.error = static_cast<std::int32_t>(-sent);
    sendReply(failed);
    return static_cast<int>(-sent);
  }
  return 0;
}

/// argv has only the name.
extern "C" [[noreturn]] void initMain() {
  // An exec makes a process dumpable again; no payload runs yet.
  if (const long hidden = raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); hidden < 0)
    failStart("prctl", "dumpable", hidden);
  raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // in addition to end of file on the control socket
  for (int descriptor = 0; descriptor < kControlDescriptor; ++descriptor) {
    raw(SYS_dup3, kAliveDescriptor, descriptor, O_CLOEXEC);
  }
  // Only this one: the kernel drops the others for pid 1, but a blocked one is queued, at the cost of the user's quota.
  const std::uint64_t child = 1ULL << (SIGCHLD - 1);
  raw(SYS_rt_sigprocmask, SIG_SETMASK, &child, nullptr, 8);
  const long signals = raw(SYS_signalfd4, -1, &child, 8, O_CLOEXEC | O_NONBLOCK);
  if (signals < 0) failStart("signalfd4", "", signals);
  raw(SYS_fcntl, kControlDescriptor, F_SETFD, FD_CLOEXEC);
  raw(SYS_fcntl, kAliveDescriptor, F_SETFD, FD_CLOEXEC);
  state.signals = static_cast<int>(signals);
  InitReply ready;
  sendReply(ready);
  for (;;) {
    awaitDomain();
    std::int32_t tid = 1;
    const long thread = cloneOnStack(
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
        loop_stack + sizeof(loop_stack), &tid, runLoop);
    if (thread < 0) failStart("clone", "thread", thread);
    for (std::int32_t running; (running = __atomic_load_n(&tid, __ATOMIC_ACQUIRE)) != 0;) {
      raw(SYS_futex, &tid, FUTEX_WAIT, running, nullptr, nullptr, 0);
    }
  }
}

}  // namespace caisson::session
