#include "broker/confine.h"

#include <sys/mman.h>

#include <cerrno>

#include "egress/confine.h"
#include "plan/syscall_rules.h"

namespace caisson::broker {
namespace {

namespace rules = plan::rules;

// I/O, waiting, memory. No socket, connect, accept or open: it only uses sockets that it receives.
constexpr std::string_view kCalls[] = {
    "brk",          "clock_gettime", "close",           "epoll_ctl",      "epoll_pwait",  "epoll_wait",
    "exit",         "exit_group",    "futex",           "getpid",         "getrandom",    "gettid",
    "gettimeofday", "madvise",       "mremap",          "munmap",         "munlock",      "read",
    "recvfrom",     "recvmsg",       "restart_syscall", "rt_sigprocmask", "rt_sigreturn", "sendmsg",
    "sendto",       "shutdown",      "tgkill",          "write"};

plan::SyscallFilter filter() {
  rules::Rules list;
  for (const std::string_view name : kCalls) list.add(name, plan::kAllow);
  list.set("mmap", plan::kAllow, {{{rules::anyBit(2, PROT_EXEC)}, plan::refuse(EPERM)}});
  list.set("mprotect", plan::kAllow, {{{rules::anyBit(2, PROT_EXEC)}, plan::refuse(EPERM)}});
  plan::SyscallFilter result;
  result.rules = list.take();
  result.unlisted = plan::refuse(EPERM);
  return result;
}

}  // namespace

Result<void> confine(const Settings& settings) {
  return egress::confineSelf({.become = settings.become,
                              .landlock_abi = settings.landlock_abi,
                              .descriptors = settings.max_connections * 2 + 64,
                              .filter = filter()});
}

}  // namespace caisson::broker
