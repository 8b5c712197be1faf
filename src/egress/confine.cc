#include "egress/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plan/landlock.h"
#include "plan/own_filter.h"
#include "sys/kernel_abi.h"
#include "sys/privileges.h"
#include "sys/raw_syscall.h"

namespace caisson::egress {
namespace {

namespace rules = plan::rules;

// Sockets, waiting, memory. No call that opens files, or starts, signals or inspects other processes.
constexpr std::string_view kCalls[] = {
    "accept",         "gettimeofday", "pipe",        "time",        "accept4",     "brk",        "clock_gettime",
    "close",          "connect",      "epoll_ctl",   "epoll_pwait", "epoll_wait",  "exit",       "exit_group",
    "fcntl",          "futex",        "getpeername", "getrandom",   "getsockname", "getsockopt", "madvise",
    "mremap",         "munmap",       "pipe2",       "read",        "recvfrom",    "recvmsg",    "restart_syscall",
    "rt_sigprocmask", "rt_sigreturn", "sendmsg",     "sendto",      "setsockopt",  "shutdown",   "splice",
    "write",          "writev",       "gettid",      "getpid",
};

Result<void> becomeUser(uid_t id) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(id, id, id) != 0 || ::setresuid(id, id, id) != 0) {
    return fail(sysError(Stage::identity, "setresuid", "egress", errno));
  }
  return {};
}

Result<void> closeFiles(int abi) {
  if (abi < 1) return {};  // the filter below allows no call that opens a file
  sys::LandlockRulesetAttr attributes{plan::filesystemRights(abi), 0, 0};
  if (abi >= 6) attributes.scoped = sys::kScopeAbstractUnix | sys::kScopeSignal;
  const std::size_t size = abi >= 6 ? sizeof(attributes) : abi >= 4 ? 16 : 8;
  const long ruleset = sys::raw(SYS_landlock_create_ruleset, &attributes, size, 0);
  if (ruleset < 0)
    return fail(sysError(Stage::landlock, "landlock_create_ruleset", "egress", static_cast<int>(-ruleset)));
  const long result = sys::raw(SYS_landlock_restrict_self, ruleset, 0);
  ::close(static_cast<int>(ruleset));
  if (result < 0) return fail(sysError(Stage::landlock, "landlock_restrict_self", "egress", static_cast<int>(-result)));
  return {};
}

void limitResources(std::uint64_t descriptors) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, descriptors);
  ::setrlimit(RLIMIT_NOFILE, &files);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_FSIZE, &none);
}

}  // namespace

plan::SyscallFilter egressFilter(bool brokered, std::uint32_t self, Architecture architecture) {
  rules::Rules list = plan::allowCalls({kCalls}, architecture);
  plan::allowAbort(list, self);
  list.set("socket", plan::refuse(EPERM),
           {{{rules::equals(0, AF_INET)}, plan::kAllow}, {{rules::equals(0, AF_INET6)}, plan::kAllow}});
  // For the credential broker: a socket pair has no address, so no other process can connect to it.
  if (brokered) list.set("socketpair", plan::refuse(EPERM), {{{rules::equals(0, AF_UNIX)}, plan::kAllow}});
  return plan::denyUnlisted(std::move(list));
}

Result<void> confineSelf(const Confinement& wanted) {
  if (::chdir("/") != 0) return fail(sysError(Stage::launch, "chdir", "/", errno));
  limitResources(wanted.descriptors);
  if (wanted.become) {
    if (auto changed = becomeUser(*wanted.become); !changed) return changed;
  }
  // The caller may have passed capabilities, even ambient ones.
  if (auto dropped = sys::dropCapabilities({.object = "egress"}); !dropped) return dropped;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (auto forbidden = sys::forbidNewPrivileges(); !forbidden) return forbidden;
  if (auto closed = closeFiles(wanted.landlock_abi); !closed) return closed;
  auto program = plan::compile(wanted.filter);
  if (!program) return fail(program.error());
  const sock_fprog code{static_cast<unsigned short>(program->size()), program->data()};
  const long result = sys::raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code);
  if (result < 0) return fail(sysError(Stage::seccomp, "seccomp", "egress", static_cast<int>(-result)));
  return {};
}

Result<void> confine(const Settings& settings) {
  const bool brokered = !settings.brokered.empty();
  // The kernel counts descriptors in flight per user against the sender's soft limit: an egress with a broker must not
  // be blocked by another sandbox of the same user. The number of connections is bounded anyway.
  return confineSelf({.become = settings.become,
                      .landlock_abi = settings.landlock_abi,
                      .descriptors = brokered ? RLIM_INFINITY : settings.max_connections * 6 + 256,
                      .filter = egressFilter(brokered, static_cast<std::uint32_t>(::getpid()))});
}

}  // namespace caisson::egress
