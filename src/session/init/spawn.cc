// Commands of a session inside the sandbox: spawn and reap.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>

#include "isolation/helper.h"
#include "session/init/init.h"

namespace caisson::session {
namespace {

constexpr int kFixedNoReplace = 0x100000;
constexpr std::uint64_t kMaxBlock = 64ULL << 20;
constexpr std::size_t kStackBytes = 64 * 1024;
constexpr int kReport = 4;  // among a newborn's descriptors
constexpr int kTerminal = kSpawnDescriptors + kMaxCgroups;

alignas(64) char newborn_stack[kStackBytes];

struct NewbornArguments {
  const isolation::Block* block;
  int terminal;
  isolation::Listening* listening;
  int* descriptors;  ///< Newborn::descriptors
  bool enters;       ///< the cgroups by itself
  bool reported;     ///< the supervisor got the listener's number, and closes it
};
NewbornArguments newborn_arguments;

std::int64_t microseconds(const timeval& time) { return time.tv_sec * 1000000LL + time.tv_usec; }

void closeDescriptor(int& descriptor) {
  if (descriptor >= 0) raw(SYS_close, descriptor);
  descriptor = -1;
}

/// Replaces 0, 1 and 2, which a spawn sets to the command's streams: these must close when the command exits.
void resetStandardStreams() {
  for (int descriptor = 0; descriptor < kControlDescriptor; ++descriptor) {
    raw(SYS_dup3, kAliveDescriptor, descriptor, O_CLOEXEC);
  }
}

SpawnedCommand* freeCommand(State& state) {
  for (int i = 0; i < kMaxCommands; ++i) {
    if (state.commands[i].used) continue;
    if (state.command_bound <= i) state.command_bound = i + 1;
    return &state.commands[i];
  }
  return nullptr;
}

}  // namespace

long mapBlock(const InitRequest& request, int descriptor) {
  if (request.bytes < sizeof(isolation::Block) || request.bytes > kMaxBlock) return -EINVAL;
  const long at = raw(SYS_mmap, request.address, request.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | kFixedNoReplace,
                      descriptor, 0);
  if (at < 0) return at;
  if (static_cast<std::uint64_t>(at) != request.address) {
    raw(SYS_munmap, at, request.bytes);
    return -EEXIST;
  }
  if (reinterpret_cast<const isolation::Block*>(at)->mapping_bytes == request.bytes) return at;
  raw(SYS_munmap, at, request.bytes);
  return -EINVAL;
}

namespace {

/// A terminal in the sandbox's devpts. A payload may have used up all of them: only this command fails then.
int openPty(const isolation::Block& block, int& master, int& slave) {
  const long ptmx = raw(SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
  if (ptmx < 0) return static_cast<int>(-ptmx);
  master = static_cast<int>(ptmx);
  const int unlock = 0;
  raw(SYS_ioctl, ptmx, TIOCSPTLCK, &unlock);
  const winsize size{block.rows, block.columns, 0, 0};
  raw(SYS_ioctl, ptmx, TIOCSWINSZ, &size);
  const long peer = raw(SYS_ioctl, ptmx, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (peer < 0) return static_cast<int>(-peer);
  slave = static_cast<int>(peer);
  return 0;
}

/// Reports the filter's listener by its number. The supervisor fetches it from pid 1, which shares descriptors with
/// this process; this works regardless of how many descriptors the payload has in flight.
void reportListener(const isolation::Block& block, const isolation::Listening& listening) {
  isolation::Message message{};
  message.kind = isolation::MessageKind::started;
  message.error = listening.error;
  message.listener = listening.descriptor;
  raw(SYS_write, block.control, &message, sizeof(message));
  newborn_arguments.reported = true;
}

/// Closes unneeded descriptors: the payload's limit on open files is in force, and the listener needs a number below
/// it.
void freeNumbers() {
  for (int i = 0; i <= kTerminal; ++i) {
    if (i == kReport || newborn_arguments.descriptors[i] < 0) continue;
    raw(SYS_close, newborn_arguments.descriptors[i]);
    newborn_arguments.descriptors[i] = -1;
  }
}

/// The supervisor records the command in parallel with this set-up, and sends a byte when that is done.
void awaitRecord(const isolation::Block& block) {
  freeNumbers();
  char released = 0;
  long got = 0;
  do {
    got = raw(SYS_read, block.control, &released, 1);
  } while (got == -EINTR);
  if (got != 1) raw(SYS_exit_group, 125);
}

[[noreturn]] void runNewborn() {
  const NewbornArguments& arguments = newborn_arguments;
  // A thread that moves only itself needs no RCU grace period.
  for (int i = kSpawnDescriptors; arguments.enters && i < kTerminal; ++i) {
    if (arguments.descriptors[i] < 0) continue;
    const long written = raw(SYS_write, arguments.descriptors[i], "0", 1);
    if (written < 0) isolation::reportAndExit(*arguments.block, Stage::limits, "write", "cgroup", -written);
  }
  const isolation::Helper none(*arguments.block);  // the sandbox is built: nothing to wait for
  isolation::becomePayload(*arguments.block, none, arguments.terminal, *arguments.listening,
                           {.before_filter = awaitRecord, .after_filter = reportListener});
}

void keepDescriptors(Newborn& newborn, const int* descriptors, int terminal) {
  for (int i = 0; i < kTerminal; ++i) newborn.descriptors[i] = descriptors[i];
  newborn.descriptors[kTerminal] = terminal;
}

/// Returns the pid, or a negative errno. If clone into the cgroup fails, the newborn starts in pid 1's.
long cloneNewborn(Newborn& newborn, const InitRequest& request, bool& in_cgroup) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID;
  const int cgroup = newborn.descriptors[kSpawnDescriptors];
  newborn_arguments.enters = cgroup >= 0 && request.cgroup == CgroupEntry::tasks;
  in_cgroup = newborn_arguments.enters;
  if (cgroup >= 0 && request.cgroup == CgroupEntry::directory) {
    sys::CloneArgs arguments{};
    arguments.flags = kFlags | sys::kCloneIntoCgroup;
    arguments.child_tid = reinterpret_cast<std::uint64_t>(&newborn.tid);
    arguments.exit_signal = SIGCHLD;
    arguments.stack = reinterpret_cast<std::uint64_t>(newborn_stack);
    arguments.stack_size = sizeof(newborn_stack);
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
    const long pid = clone3OnStack(&arguments, sizeof(arguments), runNewborn);
    in_cgroup = pid > 0;
    if (pid > 0) return pid;
  }
  return cloneOnStack(kFlags | SIGCHLD, newborn_stack + sizeof(newborn_stack), &newborn.tid, runNewborn);
}

/// Returns an errno, or 0. The newborn shares memory and descriptors with pid 1 until exec, on a separate stack:
/// nothing is copied, and pid 1 does not wait.
int startNewborn(State& state, const InitRequest& request, int* descriptors, SpawnedCommand& command, int& master,
                 bool& in_cgroup) {
  const long mapped = mapBlock(request, descriptors[0]);
  if (mapped < 0) return static_cast<int>(-mapped);
  auto& block = *reinterpret_cast<isolation::Block*>(mapped);
  for (int stream = 0; stream < 3; ++stream) block.stdio[stream] = descriptors[1 + stream];
  block.control = descriptors[4];
  int terminal = -1;
  int error = block.wants_terminal ? openPty(block, master, terminal) : 0;
  Newborn& newborn = state.newborn;
  if (error == 0) {
    newborn = Newborn{};
    newborn.listening = isolation::Listening{};
    newborn.tid = 1;
    keepDescriptors(newborn, descriptors, terminal);
    newborn_arguments = {&block, terminal, &newborn.listening, newborn.descriptors, false, false};
    const long pid = cloneNewborn(newborn, request, in_cgroup);
    if (pid < 0) error = static_cast<int>(-pid);
    newborn.pid = command.pid = static_cast<int>(pid);
  }
  if (error != 0) {
    raw(SYS_munmap, mapped, request.bytes);
    closeDescriptor(terminal);
    return error;
  }
  newborn.pending = true;
  newborn.address = request.address;
  newborn.bytes = request.bytes;
  for (int i = 0; i < kTerminal; ++i) descriptors[i] = -1;
  return 0;
}

}  // namespace

void spawn(State& state, const InitRequest& request, int* descriptors, int count) {
  finishNewborn(state);
  if (count >= kSpawnDescriptors && state.newborn.pending && !state.has_queued) {
    state.queued = request;
    state.has_queued = true;
    state.queued_count = count;
    for (int i = 0; i < kTerminal; ++i) {
      state.queued_descriptors[i] = descriptors[i];
      descriptors[i] = -1;
    }
    return;
  }
  InitReply reply;
  reply.type = InitReplyType::spawned;
  reply.command = request.command;
  SpawnedCommand* command = count >= kSpawnDescriptors && !state.newborn.pending ? freeCommand(state) : nullptr;
  int master = -1;
  if (command == nullptr) {
    reply.error = count >= kSpawnDescriptors ? EAGAIN : EMFILE;
  } else {
    bool in_cgroup = false;
    reply.error = startNewborn(state, request, descriptors, *command, master, in_cgroup);
    reply.in_cgroup = in_cgroup ? 1 : 0;
  }
  if (reply.error == 0) {
    command->used = true;
    command->exited = false;
    command->number = request.command;
    reply.pid = command->pid;
  }
  // A command without its terminal is useless; the supervisor got the error.
  if (const int error = sendReply(reply, master); error != 0 && error != EAGAIN)
    raw(SYS_kill, state.newborn.pid, SIGKILL);
  closeDescriptor(master);
}

void finishNewborn(State& state) {
  Newborn& newborn = state.newborn;
  if (!newborn.pending || __atomic_load_n(&newborn.tid, __ATOMIC_ACQUIRE) != 0) return;
  newborn.pending = false;
  raw(SYS_munmap, newborn.address, newborn.bytes);
  for (int& descriptor : newborn.descriptors) closeDescriptor(descriptor);
  if (!newborn_arguments.reported) closeDescriptor(newborn.listening.descriptor);  // it died before the report
  resetStandardStreams();
  if (!state.has_queued) return;
  state.has_queued = false;
  spawn(state, state.queued, state.queued_descriptors, state.queued_count);
  for (int& descriptor : state.queued_descriptors) closeDescriptor(descriptor);
}

void signalCommand(const State& state, std::uint32_t number, int signal) {
  for (int i = 0; i < state.command_bound; ++i) {
    const SpawnedCommand& command = state.commands[i];
    if (!command.used || command.exited || command.number != number) continue;
    if (raw(SYS_kill, -command.pid, signal) < 0) raw(SYS_kill, command.pid, signal);
  }
}

void sendExits(State& state) {
  for (int i = 0; i < state.command_bound; ++i) {
    SpawnedCommand& command = state.commands[i];
    if (!command.used || !command.exited) continue;
    if (sendReply(command.reply) == EAGAIN) return;
    command.used = false;
  }
  while (state.command_bound > 0 && !state.commands[state.command_bound - 1].used) --state.command_bound;
}

void reapAll(State& state) {
  for (;;) {
    int status = 0;
    rusage usage{};
    const long pid = raw(SYS_wait4, -1, &status, WNOHANG, &usage);
    if (pid <= 0) break;
    for (int i = 0; i < state.command_bound; ++i) {
      SpawnedCommand& command = state.commands[i];
      if (!command.used || command.exited || command.pid != pid) continue;
      command.exited = true;
      InitReply& reply = command.reply;
      reply = InitReply{};
      reply.type = InitReplyType::exited;
      reply.command = command.number;
      reply.pid = command.pid;
      reply.status = status;
      reply.user_us = microseconds(usage.ru_utime);
      reply.system_us = microseconds(usage.ru_stime);
      reply.peak_kib = usage.ru_maxrss;
      reply.in_blocks = usage.ru_inblock;
      reply.out_blocks = usage.ru_oublock;
      reply.alone = raw(SYS_kill, -1, 0) == -ESRCH ? 1 : 0;
      break;
    }
  }
  finishNewborn(state);  // before the replies: a command's streams must close before its exit is reported
  sendExits(state);
}

}  // namespace caisson::session
