#include "broker/confine.h"

#include <unistd.h>

#include <utility>

#include "egress/confine.h"
#include "plan/own_filter.h"

namespace caisson::broker {
namespace {

// I/O, waiting, memory. No socket, connect, accept or open: it only uses sockets that it receives.
constexpr std::string_view kCalls[] = {"brk",
                                       "clock_gettime",
                                       "close",
                                       "epoll_ctl",
                                       "epoll_pwait",
                                       "epoll_wait",
                                       "exit",
                                       "exit_group",
                                       "futex",
                                       "getpid",
                                       "getrandom",
                                       "gettid",
                                       "gettimeofday",
                                       "madvise",
                                       "mremap",
                                       "munmap",
                                       "munlock",
                                       "read",
                                       "recvfrom",
                                       "recvmsg",
                                       "restart_syscall",
                                       "rt_sigprocmask",
                                       "rt_sigreturn",
                                       "sendmsg",
                                       "sendto",
                                       "shutdown",
                                       "time",
                                       "write"};

}  // namespace

plan::SyscallFilter brokerFilter(std::uint32_t self, Architecture architecture) {
  plan::rules::Rules rules = plan::allowCalls({kCalls}, architecture);
  plan::allowAbort(rules, self);
  return plan::denyUnlisted(std::move(rules));
}

Result<void> confine(const Settings& settings) {
  return egress::confineSelf({.become = settings.become,
                              .landlock_abi = settings.landlock_abi,
                              .descriptors = settings.max_connections * 2 + 64,
                              .filter = brokerFilter(static_cast<std::uint32_t>(::getpid()))});
}

}  // namespace caisson::broker
