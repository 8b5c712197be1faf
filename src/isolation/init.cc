// pid 1 of a sandbox: reaps processes, forwards signals, reports how the payload ended.
//
// It has the payload's user id, so it must hold nothing secret. It was cloned from the supervisor, whose memory may
// contain anything; after the payload has started it unmaps everything but the pages of this section and the launch
// block. From then on there is no libc, no thread storage and only the block's stack: the code below is compiled
// without instrumentation and calls no functions outside this section.
#include <linux/rseq.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <cerrno>

#include "isolation/child.h"
#include "isolation/system_v.h"

extern "C" {
extern const char __start_caisson_init[] __attribute__((visibility("hidden")));
extern const char __stop_caisson_init[] __attribute__((visibility("hidden")));
}

namespace caisson::isolation {
namespace {

#define CAISSON_INIT __attribute__((section("caisson_init"), noinline, used))

constexpr std::uintptr_t kPage = 65536;  // the largest page size of our architectures

struct SignalInfo {  // signalfd_siginfo
  char bytes[128];
};

/// Unmaps [from, to). Skips parts that the kernel seals (the vdso on newer kernels).
CAISSON_INIT void unmapRange(std::uintptr_t from, std::uintptr_t to) {
  struct {
    std::uintptr_t from, to;
  } pending[64];
  int count = 0;
  pending[count++] = {from, to};
  while (count > 0) {
    const auto range = pending[--count];
    if (range.from >= range.to) continue;
    const long result = raw(SYS_munmap, range.from, range.to - range.from);
    if (result != -EPERM || range.to - range.from <= kPage) continue;  // only a sealed part needs splitting
    const std::uintptr_t middle = ((range.from + (range.to - range.from) / 2) / kPage) * kPage;
    if (middle <= range.from || count + 2 > 64) continue;
    pending[count++] = {range.from, middle};
    pending[count++] = {middle, range.to};
  }
}

/// Unmaps everything but this section and the block.
CAISSON_INIT void giveUpMemory(const Block& block) {
  const std::uintptr_t code = reinterpret_cast<std::uintptr_t>(__start_caisson_init) / 4096 * 4096;
  const std::uintptr_t code_end = (reinterpret_cast<std::uintptr_t>(__stop_caisson_init) + 4095) / 4096 * 4096;
  const std::uintptr_t data = reinterpret_cast<std::uintptr_t>(&block);
  const std::uintptr_t data_end = data + block.mapping_bytes;
#if defined(__x86_64__)
  const std::uintptr_t top = 0x7ffffffff000;
#else
  const std::uintptr_t top = 0x1000000000000;
#endif
  const bool code_first = code < data;
  unmapRange(0x1000, code_first ? code : data);
  unmapRange(code_first ? code_end : data_end, code_first ? data : code);
  unmapRange(code_first ? data_end : code_end, top);
}

/// Sends a signal that the supervisor requested.
CAISSON_INIT void forward(int payload, int signal) {
  if (signal <= 0 || signal > 64) return;
  // To the payload's whole process group, like a terminal does; if that fails, to the payload itself.
  if (raw(SYS_kill, -payload, signal) < 0) raw(SYS_kill, payload, signal);
}

/// Whether pid 1 has no children: orphans of this pid namespace become its children.
CAISSON_INIT bool isAlone() {
  for (;;) {
    int status = 0;
    const long pid = raw(SYS_wait4, -1, &status, WNOHANG, nullptr);
    if (pid <= 0) return pid == -ECHILD;
  }
}

/// Whether the process limit left no room while the payload, which has been waited for, was still there. Tries it: the
/// kernel tells it in no other way, and a program that is denied a process often exits at once.
CAISSON_INIT bool wasFull(const Block& block) {
  for (std::uint32_t i = 0; i < block.limit_count; ++i) {
    if (block.limits[i].resource != RLIMIT_NPROC || block.limits[i].value == 0) continue;
    std::uint64_t limit[2];  // soft and hard
    if (raw(SYS_prlimit64, 0, RLIMIT_NPROC, nullptr, limit) != 0) return false;
    limit[0] = block.limits[i].value - 1;
    if (limit[0] > limit[1] || raw(SYS_prlimit64, 0, RLIMIT_NPROC, limit, nullptr) != 0) return false;
    const long child = raw(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // not waited for: what is left of the payload may stop it
    if (child == 0) {
      for (;;) raw(SYS_exit_group, 0);
    }
    return child == -EAGAIN;
  }
  return false;
}

/// Reports the payload's wait status and exits.
CAISSON_INIT [[noreturn]] void finish(const Block& block, int control, int status) {
  Message message;
  for (std::size_t i = 0; i < sizeof(message); ++i) reinterpret_cast<volatile char*>(&message)[i] = 0;
  message.kind = MessageKind::finished;
  message.wait_status = status;
  message.tasks_full = !block.subreaper && status != 0 && wasFull(block);
  // If alone, the supervisor need not wait until the kernel has destroyed the namespaces.
  if (!block.subreaper && isAlone()) {
    message.alone = raw(SYS_getrusage, RUSAGE_SELF, &message.used[0]) == 0 &&
                    raw(SYS_getrusage, RUSAGE_CHILDREN, &message.used[1]) == 0;
  }
  raw(SYS_write, control, &message, sizeof(message));
  // When pid 1 exits, the kernel kills everything in its namespace, daemons included.
  for (;;) raw(SYS_exit_group, 0);
}

CAISSON_INIT void answerMeasure(int control) {
  Message message;
  for (std::size_t i = 0; i < sizeof(message); ++i) reinterpret_cast<volatile char*>(&message)[i] = 0;
  message.kind = MessageKind::measured;
  message.ipc_bytes = static_cast<std::uint64_t>(systemVBytes());
  raw(SYS_sendto, control, &message, sizeof(message), 0x40 /* MSG_DONTWAIT */, nullptr, 0);
}

/// Sends a new TCP socket of the sandbox's network, which the supervisor connects to a published port.
CAISSON_INIT void sendSocket(int control, const Message& request) {
  Message reply;
  char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(alignof(cmsghdr))));
  for (std::size_t i = 0; i < sizeof(reply); ++i) reinterpret_cast<volatile char*>(&reply)[i] = 0;
  for (std::size_t i = 0; i < sizeof(room); ++i) static_cast<volatile char*>(room)[i] = 0;
  const bool known = request.family == AF_INET || request.family == AF_INET6;
  const long made = known ? raw(SYS_socket, request.family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -EAFNOSUPPORT;
  reply.kind = MessageKind::socket;
  reply.error = made < 0 ? static_cast<std::int32_t>(-made) : 0;
  reply.request = request.request;
  iovec part;
  part.iov_base = &reply;
  part.iov_len = sizeof(reply);
  msghdr header;
  header.msg_name = nullptr;
  header.msg_namelen = 0;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = nullptr;
  header.msg_controllen = 0;
  header.msg_flags = 0;
  if (made >= 0) {
    auto* rights = reinterpret_cast<cmsghdr*>(room);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    *reinterpret_cast<int*>(CMSG_DATA(rights)) = static_cast<int>(made);
    header.msg_control = room;
    header.msg_controllen = sizeof(room);
  }
  // Never blocks. If the payload's user has too many descriptors in flight, the supervisor gets the error instead.
  const long sent = raw(SYS_sendmsg, control, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (made >= 0) raw(SYS_close, made);
  if (sent != -ETOOMANYREFS) return;
  reply.error = ETOOMANYREFS;
  raw(SYS_sendto, control, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
}

/// Kills the orphans of the payload, one by one. Without a pid namespace the kernel does not kill them; they became
/// children of this subreaper.
CAISSON_INIT void killRemaining(const char* children) {
  long tick[2];
  tick[0] = 0;
  tick[1] = 1000000;
  for (int round = 0; round < 20000;) {
    int status;
    const long pid = raw(SYS_wait4, -1, &status, WNOHANG, nullptr);
    if (pid == -ECHILD) return;
    if (pid > 0) continue;  // reaping counts as progress
    const long fd = raw(SYS_openat, -100 /* AT_FDCWD */, children, 02000000 /* O_CLOEXEC */, 0);
    if (fd < 0) return;
    // Pids of unreaped children cannot be reused. Stop all first, so that none can fork.
    for (const int signal : {SIGSTOP, SIGKILL}) {
      raw(SYS_lseek, fd, 0, 0);
      char text[512];
      long number = 0;
      for (;;) {
        const long got = raw(SYS_read, fd, text, sizeof(text));
        if (got <= 0) break;
        for (long i = 0; i < got; ++i) {
          if (text[i] >= '0' && text[i] <= '9') {
            number = number * 10 + (text[i] - '0');
          } else if (number > 0) {
            raw(SYS_kill, number, signal);
            number = 0;
          }
        }
      }
    }
    raw(SYS_close, fd);
    raw(SYS_nanosleep, tick, nullptr);
    ++round;
  }
}

/// Ends the sandbox without a report: the supervisor is gone, or pid 1 cannot go on.
CAISSON_INIT [[noreturn]] void giveUp(const Block& block, int payload) {
  if (block.subreaper) {
    raw(SYS_kill, payload, SIGKILL);
    killRemaining(block.children_path);
  }
  for (;;) raw(SYS_exit_group, 0);
}

CAISSON_INIT [[noreturn]] void initLoop(const Block* block, int payload, int signals) {
  if (block->hide_init) giveUpMemory(*block);
  const int control = block->control;
  const bool subreaper = block->subreaper;
  for (;;) {
    pollfd waits[2];
    waits[0].fd = control;
    waits[0].events = POLLIN;
    waits[0].revents = 0;
    waits[1].fd = signals;
    waits[1].events = POLLIN;
    waits[1].revents = 0;
    const long ready = raw(SYS_ppoll, waits, 2, nullptr, nullptr, 0);
    if (ready < 0 && ready != -EINTR) giveUp(*block, payload);  // cannot supervise any longer: kill the sandbox
    if (waits[1].revents != 0) {
      SignalInfo info;
      raw(SYS_read, signals, &info, sizeof(info));
      for (;;) {
        int status = 0;
        const long pid = raw(SYS_wait4, -1, &status, WNOHANG, nullptr);
        if (pid <= 0) break;
        if (pid == payload) {
          if (subreaper) killRemaining(block->children_path);
          finish(*block, control, status);
        }
      }
    }
    if ((waits[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      Message message;
      const long got = raw(SYS_recvfrom, control, &message, sizeof(message), 0, nullptr, nullptr);
      if (got != static_cast<long>(sizeof(message))) {
        giveUp(*block, payload);  // the supervisor is gone, so limits are no longer enforced
      }
      if (message.kind == MessageKind::signal) forward(payload, message.signal);
      if (message.kind == MessageKind::measure) answerMeasure(control);
      if (message.kind == MessageKind::make_socket) sendSocket(control, message);
    }
  }
}

/// Unregisters the C library's rseq area; false if that fails. The kernel writes to a registered area on return to user
/// mode, so this must precede unmapping it.
bool releaseRseq() {
#if defined(__x86_64__)
  constexpr std::uint32_t kSignature = 0x53053053;
#else
  constexpr std::uint32_t kSignature = 0xd428bc00;
#endif
  if (__rseq_size == 0) return true;
  auto* area = reinterpret_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
  const unsigned rounded = (__rseq_size + 31) / 32 * 32;
  for (const unsigned size : {32U, __rseq_size, rounded}) {
    if (raw(SYS_rseq, area, size, 1 /* RSEQ_FLAG_UNREGISTER */, kSignature) == 0) return true;
  }
  return false;
}

}  // namespace

void becomeInit(const Block& block, int payload_pid, int signals) {
  // The kernel drops signals from inside for pid 1, but queues blocked ones, at the cost of the user's quota. Without a
  // pid namespace they would have their effect: blocked, and few are queued.
  const std::uint64_t blocked = block.subreaper ? ~0ULL : 1ULL << (SIGCHLD - 1);
  raw(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, nullptr, 8);
  if (block.subreaper) {
    constexpr std::uint64_t kFewPending[2] = {16, 16};
    raw(SYS_prlimit64, 0, RLIMIT_SIGPENDING, kFewPending, nullptr);
  }
  if (!releaseRseq()) reportAndExit(block, Stage::launch, "rseq", "unregister", EINVAL);
  char* stack = block.init_stack_top;
  const Block* argument = &block;
  const int descriptor = signals;
#if defined(__x86_64__)
  register const Block* rdi asm("rdi") = argument;
  register long rsi asm("rsi") = payload_pid;
  register long rdx asm("rdx") = descriptor;
  asm volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tcall *%1\n\tud2"
               :
               : "r"(stack), "r"(&initLoop), "r"(rdi), "r"(rsi), "r"(rdx)
               : "memory");
#else
  register const Block* x0 asm("x0") = argument;
  register long x1 asm("x1") = payload_pid;
  register long x2 asm("x2") = descriptor;
  asm volatile("mov sp, %0\n\tmov x29, xzr\n\tbr %1"
               :
               : "r"(stack), "r"(&initLoop), "r"(x0), "r"(x1), "r"(x2)
               : "memory");
#endif
  __builtin_unreachable();
}

}  // namespace caisson::isolation
