// pid 1 of a container that an OCI runtime made: applies the payload's last layers, executes it, forwards signals,
// reaps, and reports how it ended.
//
// A program without a C library: it runs on any root. It has no capabilities, is not dumpable, and holds nothing but
// its control socket once the payload runs. If the supervisor is gone it exits, and the kernel kills the container.
#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>

#include "isolation/child.h"
#include "isolation/freestanding.h"
#include "isolation/helper.h"
#include "isolation/system_v.h"
#include "runtime/init_descriptors.h"

namespace caisson::runtime {
namespace {

using isolation::Block;
using isolation::Message;
using isolation::MessageKind;
using sys::raw;

constexpr int kFixedNoReplace = 0x100000;
constexpr std::uint64_t kMaxBlock = 64ULL << 20;

alignas(64) char payload_stack[64 * 1024];

struct PayloadStart {
  const Block* block;
  int terminal;
  isolation::Listening listening;
};
PayloadStart start;

[[noreturn]] void leave(int status) {
  for (;;) raw(SYS_exit_group, status);
}

[[noreturn]] void failStart(const char* call, const char* object, long error) {
  Block block{};
  block.control = kControlDescriptor;
  isolation::reportAndExit(block, Stage::launch, call, object, error < 0 ? -error : error);
}

std::uint64_t numberOf(const char* text) {
  std::uint64_t value = 0;
  for (; text != nullptr && *text >= '0' && *text <= '9'; ++text)
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

/// Maps the payload's block, privately, at the address for which it was compiled.
Block& mapBlock(std::uint64_t address, std::uint64_t bytes) {
  if (bytes < sizeof(Block) || bytes > kMaxBlock) failStart("mmap", "block", EINVAL);
  const long at =
      raw(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | kFixedNoReplace, kBlockDescriptor, 0);
  if (at < 0) failStart("mmap", "block", at);
  auto& block = *reinterpret_cast<Block*>(at);
  if (static_cast<std::uint64_t>(at) != address || block.mapping_bytes != bytes) failStart("mmap", "block", EEXIST);
  block.control = kControlDescriptor;
  for (int stream = 0; stream < 3; ++stream) block.stdio[stream] = kFirstStream + stream;
  return block;
}

/// The first message: from it the supervisor knows this process. With the pty's master, if there is one.
void sendPrepared(const Block& block, int master) {
  Message message{};
  message.kind = MessageKind::prepared;
  if (master >= 0) message.descriptors = 2;
  const long sent =
      isolation::sendRecordWithRetry(block.control, &message, sizeof(message), &master, master >= 0 ? 1 : 0);
  if (sent < 0) failStart("sendmsg", "control socket", sent);
  isolation::closeFd(master);
}

[[noreturn]] void runPayload() {
  const isolation::Helper none(*start.block);  // the container is built: nothing to wait for
  isolation::becomePayload(*start.block, none, start.terminal, start.listening);
}

void forward(int payload, int signal) {
  if (signal <= 0 || signal > 64) return;
  // To the payload's whole process group, like a terminal does; if that fails, to the payload itself.
  if (raw(SYS_kill, -payload, signal) < 0) raw(SYS_kill, payload, signal);
}

[[noreturn]] void finish(int status) {
  Message message{};
  message.kind = MessageKind::finished;
  message.wait_status = status;
  int ignored = 0;
  while (raw(SYS_wait4, -1, &ignored, WNOHANG, nullptr) > 0) {
  }
  message.alone = raw(SYS_getrusage, RUSAGE_SELF, &message.used[0]) == 0 &&
                  raw(SYS_getrusage, RUSAGE_CHILDREN, &message.used[1]) == 0;
  raw(SYS_write, kControlDescriptor, &message, sizeof(message));
  leave(0);  // the kernel kills everything that is left in the container
}

void answerMeasure() {
  Message message{};
  message.kind = MessageKind::measured;
  message.ipc_bytes = static_cast<std::uint64_t>(isolation::systemVBytes());
  raw(SYS_sendto, kControlDescriptor, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
}

void reap(int payload) {
  for (;;) {
    int status = 0;
    const long pid = raw(SYS_wait4, -1, &status, WNOHANG, nullptr);
    if (pid <= 0) return;
    if (pid == payload) finish(status);
  }
}

[[noreturn]] void serve(int payload, int signals) {
  for (;;) {
    pollfd waits[2] = {{kControlDescriptor, POLLIN, 0}, {signals, POLLIN, 0}};
    const long ready = raw(SYS_ppoll, waits, 2, nullptr, nullptr, 0);
    if (ready < 0 && ready != -EINTR) leave(125);
    if (waits[1].revents != 0) {
      char info[128];
      raw(SYS_read, signals, info, sizeof(info));
      reap(payload);
    }
    if (waits[0].revents == 0) continue;
    Message message;
    const long got = raw(SYS_recvfrom, kControlDescriptor, &message, sizeof(message), MSG_DONTWAIT, nullptr, nullptr);
    if (got == -EAGAIN || got == -EINTR) continue;
    if (got != static_cast<long>(sizeof(message))) leave(125);  // the supervisor is gone
    if (message.kind == MessageKind::signal) forward(payload, message.signal);
    if (message.kind == MessageKind::measure) answerMeasure();
  }
}

/// Keeps two descriptors: the payload's streams must close when it exits.
void closeOthers(int signals) {
  constexpr int kLowSignals = kControlDescriptor + 1;
  raw(SYS_dup3, signals, kLowSignals, O_CLOEXEC);
  raw(SYS_close_range, 0, kControlDescriptor - 1, 0);
  raw(SYS_close_range, kLowSignals + 1, ~0U, 0);
}

}  // namespace

/// argv: the program, the block's address, its size.
extern "C" [[noreturn]] void initMain(const std::uint64_t* stack) {
  if (const long hidden = raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); hidden < 0) leave(125);
  const auto* arguments = reinterpret_cast<const char* const*>(stack + 1);
  if (*stack != 3) failStart("exec", "init", EINVAL);
  const std::uint64_t child = 1ULL << (SIGCHLD - 1);
  raw(SYS_rt_sigprocmask, SIG_SETMASK, &child, nullptr, 8);  // the kernel drops the others for pid 1
  Block& block = mapBlock(numberOf(arguments[1]), numberOf(arguments[2]));
  const long lowest = raw(SYS_signalfd4, -1, &child, 8, O_CLOEXEC);
  if (lowest < 0) failStart("signalfd4", "", lowest);
  int master = -1;
  start.terminal = -1;
  if (block.wants_terminal) start.terminal = isolation::openTerminal(block, &master);
  sendPrepared(block, master);
  start.block = &block;
  start.listening = isolation::Listening{};
  // Shares memory and descriptors with the payload's process until its exec, and waits for that.
  std::int32_t unused = 0;
  const long payload = cloneOnStack(CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD,
                                    payload_stack + sizeof(payload_stack), &unused, runPayload);
  if (payload < 0) failStart("clone", "payload", payload);
  isolation::handOverListener(block, start.listening);
  closeOthers(static_cast<int>(lowest));
  serve(static_cast<int>(payload), kControlDescriptor + 1);
}

}  // namespace caisson::runtime
