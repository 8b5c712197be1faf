// Commands of a session: start, output, end.
#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#include "isolation/child.h"
#include "isolation/helper.h"
#include "session/init/resident.h"

namespace caisson::session {
namespace {

constexpr int kFixedNoReplace = 0x100000;
constexpr std::uint64_t kMaxBlock = 64ULL << 20;
constexpr std::int64_t kFirstLookMs = 20, kLongestLookMs = 1000;

std::int64_t microseconds(const timeval& time) { return time.tv_sec * 1000000LL + time.tv_usec; }

Command* freeCommand(State& state) {
  for (int i = 0; i < kMaxCommands; ++i) {
    if (state.commands[i].used) continue;
    if (state.command_bound <= i) state.command_bound = i + 1;
    return &state.commands[i];
  }
  return nullptr;
}

void clear(Command& command) {
  command = Command{};
  command.client = command.input = command.record = -1;
  for (int i = 0; i < 2; ++i) command.pipes[i] = command.logs[i] = -1;
}

/// The block at the address it was compiled for. Private: what is changed here is seen by nobody else.
long mapBlock(const Request& request, int descriptor) {
  if (request.bytes < sizeof(isolation::Block) || request.bytes > kMaxBlock) return -EINVAL;
  const long at = raw(SYS_mmap, request.address, request.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | kFixedNoReplace,
                      descriptor, 0);
  if (at < 0) return at;
  if (static_cast<std::uint64_t>(at) != request.address) {
    raw(SYS_munmap, at, request.bytes);
    return -EEXIST;
  }
  const auto* block = reinterpret_cast<const isolation::Block*>(at);
  if (block->mapping_bytes == request.bytes) return at;
  raw(SYS_munmap, at, request.bytes);
  return -EINVAL;
}

/// Returns when who asked has put the command on record. It has not long: pid 1 waits for this process's exec, and all
/// else that pid 1 looks after waits with it.
void awaitGo(const isolation::Block& block) {
  const long patience[2] = {kGoPatienceMs / 1000, kGoPatienceMs % 1000 * 1000000};
  pollfd said{block.control, POLLIN, 0};
  long ready;
  do {
    ready = raw(SYS_ppoll, &said, 1, patience, nullptr, 0);
  } while (ready == -EINTR);
  if (ready == 0) isolation::reportAndExit(block, Stage::launch, "wait", kGoObject, ETIMEDOUT);
  Request go;
  const long got = raw(SYS_recvfrom, block.control, &go, sizeof(go), MSG_DONTWAIT, nullptr, nullptr);
  const bool heard = got == static_cast<long>(sizeof(go)) && go.protocol == kProtocol && go.ask == Ask::go;
  if (heard && go.signal == 0) return;
  for (;;) raw(SYS_exit_group, 125);  // it must not run, or nobody is left who asked for it
}

/// The child shares this memory until its exec and runs below this very stack frame: nothing is copied.
/// Nor is the table of descriptors: the filter's listener, which is made in the child, is here as well.
[[gnu::noinline]] long startPayload(const isolation::Block& block, int terminal, bool held,
                                    isolation::Listening& listening) {
  const isolation::Helper none(block);  // the sandbox stands: there is nothing left to wait for
  const long pid = raw(SYS_clone, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) isolation::becomePayload(block, none, terminal, listening, held ? awaitGo : nullptr);
  takeStandardNumbers();  // they are the payload's streams now, which must end when the payload does
  return pid;
}

int makePipe(int& read_end, int& write_end) {
  int ends[2];
  const long made = raw(SYS_pipe2, ends, O_CLOEXEC);
  if (made < 0) return static_cast<int>(-made);
  read_end = ends[0];
  write_end = ends[1];
  return 0;
}

/// A terminal in the sandbox's own devpts. A payload may have used them all up: an error then, not the end.
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

/// Pipes for a background command: this process reads its output and may feed its input.
int makePipes(Command& command, const Request& request, int* child_ends) {
  for (int stream = 0; stream < 2; ++stream) {
    if (const int error = makePipe(command.pipes[stream], child_ends[stream + 1]); error != 0) return error;
    raw(SYS_fcntl, command.pipes[stream], F_SETFL, O_NONBLOCK);
  }
  if ((request.flags & kKeepInput) != 0) return makePipe(child_ends[0], command.input);
  return 0;
}

void finish(State& state, Command& command, int status, const rusage& usage) {
  command.ended = true;
  if (command.background) {
    EndRecord record;
    record.status = status;
    record.timed_out = command.timed_out ? 1 : 0;
    record.limit = command.limit_reached;
    record.elapsed_ms = nowMs() - command.started_ms;
    record.user_us = microseconds(usage.ru_utime);
    record.system_us = microseconds(usage.ru_stime);
    record.peak_kib = usage.ru_maxrss;
    timespec now{};
    raw(SYS_clock_gettime, CLOCK_REALTIME, &now);
    record.ended = now.tv_sec;
    for (int stream = 0; stream < 2; ++stream) {
      pump(command, stream);  // what it wrote before it ended
      record.dropped[stream] = command.dropped[stream];
    }
    raw(SYS_pwrite64, command.record, &record, sizeof(record), 0);
    closeDescriptor(command.record);
    closeDescriptor(command.input);
    releaseIfDone(command);
    return;
  }
  Reply message;
  message.say = Say::finished;
  message.value = status;
  message.exec = command.number;
  message.pid = command.pid;
  message.user_us = microseconds(usage.ru_utime);
  message.system_us = microseconds(usage.ru_stime);
  message.peak_kib = usage.ru_maxrss;
  message.in_blocks = usage.ru_inblock;
  message.out_blocks = usage.ru_oublock;
  message.limit = command.limit_reached;
  message.others = anythingRuns() ? 1 : 0;
  if (command.client >= 0) reply(state.clients[command.client].descriptor, message);
  command.used = false;
}

}  // namespace

std::int64_t nowMs() {
  timespec now{};
  raw(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void closeDescriptor(int& descriptor) {
  if (descriptor >= 0) raw(SYS_close, descriptor);
  descriptor = -1;
}

Command* findCommand(State& state, std::uint32_t number) {
  for (Command& command : state.inUse()) {
    if (command.used && command.number == number) return &command;
  }
  return nullptr;
}

void takeStandardNumbers() {
  for (int descriptor = 0; descriptor < kControlDescriptor; ++descriptor) {
    raw(SYS_dup3, kAliveDescriptor, descriptor, O_CLOEXEC);
  }
}

int startCommand(State& state, const Request& request, int client, int* descriptors, int count, Reply& answer,
                 int* terminal_master, int* listener) {
  const bool background = request.ask == Ask::background;
  if (count != (background ? 5 : 4)) return EINVAL;
  Command* command = freeCommand(state);
  if (command == nullptr) return EAGAIN;
  if (findCommand(state, request.exec) != nullptr) return EEXIST;
  const long mapped = mapBlock(request, descriptors[0]);
  if (mapped < 0) return static_cast<int>(-mapped);
  auto& block = *reinterpret_cast<isolation::Block*>(mapped);
  clear(*command);
  command->background = background;
  command->number = request.exec;

  int child_ends[3] = {descriptors[1], -1, -1};
  int error = 0;
  if (background) {
    error = makePipes(*command, request, child_ends);
  } else {
    child_ends[1] = descriptors[2];
    child_ends[2] = descriptors[3];
  }
  block.control = state.clients[client].descriptor;
  for (int stream = 0; stream < 3; ++stream) block.stdio[stream] = child_ends[stream];
  int terminal = -1;
  if (error == 0 && block.wants_terminal) error = openPty(block, *terminal_master, terminal);
  if (error == 0) {
    isolation::Listening listening;
    // Written by a process that the compiler knows nothing of: what it does before its exec never returns here.
    asm volatile("" : : "r"(&listening) : "memory");
    const long pid = startPayload(block, terminal, (request.flags & kHeld) != 0 && !background, listening);
    asm volatile("" : : "r"(&listening) : "memory");
    *listener = listening.descriptor;
    answer.amount = listening.error;
    if (pid < 0) error = static_cast<int>(-pid);
    command->pid = static_cast<int>(pid);
  }
  raw(SYS_munmap, mapped, request.bytes);
  closeDescriptor(terminal);
  if (background) {
    for (int stream = 1; stream < 3; ++stream) closeDescriptor(child_ends[stream]);
    if ((request.flags & kKeepInput) != 0) closeDescriptor(child_ends[0]);
  }
  if (error != 0) {
    for (int stream = 0; stream < 2; ++stream) closeDescriptor(command->pipes[stream]);
    closeDescriptor(command->input);
    return error;
  }
  command->used = true;
  command->started_ms = nowMs();
  command->cpu_ms = request.cpu_ms;
  command->cpu_look_ms = command->started_ms + kFirstLookMs;
  if (background) {
    if (request.milliseconds > 0) command->deadline_ms = command->started_ms + request.milliseconds;
    command->limit = request.limit;
    for (int stream = 0; stream < 2; ++stream) {
      command->logs[stream] = descriptors[stream + 2];
      descriptors[stream + 2] = -1;
    }
    command->record = descriptors[4];
    descriptors[4] = -1;
  } else {
    command->client = client;
  }
  answer.say = Say::started;
  answer.value = static_cast<int>((*terminal_master >= 0 ? kTerminal : 0U) | (*listener >= 0 ? kListener : 0U));
  answer.exec = command->number;
  answer.pid = command->pid;
  return 0;
}

void pump(Command& command, int stream) {
  if (command.pipes[stream] < 0) return;
  char buffer[16 * 1024];
  // A bounded turn: a command that floods must not keep the others waiting.
  for (int turn = 0; turn < 16; ++turn) {
    const long got = raw(SYS_read, command.pipes[stream], buffer, sizeof(buffer));
    if (got == -EAGAIN || got == -EINTR) return;
    if (got <= 0) {
      closeDescriptor(command.pipes[stream]);
      closeDescriptor(command.logs[stream]);
      return;
    }
    const std::uint64_t room = command.limit > command.written[stream] ? command.limit - command.written[stream] : 0;
    const std::uint64_t wanted = static_cast<std::uint64_t>(got) < room ? static_cast<std::uint64_t>(got) : room;
    const long done = wanted == 0 ? 0 : raw(SYS_write, command.logs[stream], buffer, wanted);
    const std::uint64_t kept = done > 0 ? static_cast<std::uint64_t>(done) : 0;  // a full disk drops, never blocks
    command.written[stream] += kept;
    command.dropped[stream] += static_cast<std::uint64_t>(got) - kept;
  }
}

void releaseIfDone(Command& command) {
  if (!command.used || !command.ended) return;
  if (command.background && (command.pipes[0] >= 0 || command.pipes[1] >= 0)) return;
  command.used = false;
}

void reapAll(State& state) {
  for (;;) {
    int status = 0;
    rusage usage{};
    const long pid = raw(SYS_wait4, -1, &status, WNOHANG, &usage);
    if (pid <= 0) return;
    for (Command& command : state.inUse()) {
      if (!command.used || command.ended || command.pid != pid) continue;
      finish(state, command, status, usage);
      break;
    }
  }
}

/// A process of its own has RLIMIT_CPU; this is for all that a command started together.
void holdToCpuTime(Command& command, std::int64_t now) {
  const std::int64_t left = command.cpu_ms - cpuOfTree(command.pid);
  if (left <= 0) {
    command.limit_reached = kCpuLimit;
    command.cpu_ms = 0;
    return signalTree(command.pid, SIGKILL);
  }
  // Even on eight processors it can't be used up before the next look.
  const std::int64_t pause = left / 8;
  command.cpu_look_ms = now + (pause < kFirstLookMs ? kFirstLookMs : pause > kLongestLookMs ? kLongestLookMs : pause);
}

void enforceDeadlines(State& state) {
  const std::int64_t now = nowMs();
  if (now >= state.end_ms) {
    for (;;) raw(SYS_exit_group, 0);  // the session's time is over: everything in the namespace ends with pid 1
  }
  for (Command& command : state.inUse()) {
    if (!command.used || command.ended) continue;
    if (command.cpu_ms != 0 && now >= command.cpu_look_ms) holdToCpuTime(command, now);
    if (command.deadline_ms == 0 || now < command.deadline_ms) continue;
    command.timed_out = true;
    command.deadline_ms = 0;
    signalTree(command.pid, SIGKILL);
  }
}

}  // namespace caisson::session
