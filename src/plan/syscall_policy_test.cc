// How a policy's rules about processes and calls change the filter.
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "plan/syscall_filter_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

TEST(ProcessRules, WithoutForkOnlyThreadsAreMade) {
  CONFORMS("R-PROCESS-5");
  Policy policy;
  policy.process.allow_fork = false;
  const Filter program = programFor(policy);
  if (here("fork")) {
    EXPECT_EQ(ask(program, "fork"), seen(EPERM));
  }
  if (here("vfork")) {
    EXPECT_EQ(ask(program, "vfork"), seen(EPERM));
  }
  EXPECT_EQ(ask(program, "clone", {{17}}), seen(EPERM));
  EXPECT_EQ(ask(program, "clone", {{CLONE_VM | CLONE_VFORK | 17}}), seen(EPERM));
  EXPECT_EQ(ask(program, "clone", {{0x3d0f00}}), kLet);
  EXPECT_EQ(ask(program, "clone", {{0x3d0f00 | CLONE_NEWUSER}}), seen(EPERM));
  EXPECT_EQ(ask(program, "clone3"), refused(ENOSYS));
}

TEST(ProcessRules, WithoutExecOnlyTheExecWithTheTokenIsAllowed) {
  CONFORMS("R-PROCESS-6");
  Policy policy;
  policy.process.allow_exec = false;
  const ExecToken token{0x12345678, 0x9abcdef0};
  const Filter program = programFor(policy, token);
  const std::uint64_t first = (std::uint64_t{token.first} << 32) | static_cast<std::uint32_t>(AT_FDCWD);
  const std::uint64_t second = std::uint64_t{token.second} << 32;
  EXPECT_EQ(ask(program, "execveat", {{first, 0, 0, 0, second}}), kLet);
  EXPECT_EQ(ask(program, "execve"), seen(EPERM));
  EXPECT_EQ(ask(program, "execve", {{first, 0, 0, 0, second}}), seen(EPERM));
  EXPECT_EQ(ask(program, "execveat"), seen(EPERM));
  EXPECT_EQ(ask(program, "execveat", {{first, 0, 0, 0, 0}}), seen(EPERM));
  EXPECT_EQ(ask(program, "execveat", {{static_cast<std::uint32_t>(AT_FDCWD), 0, 0, 0, second}}), seen(EPERM));
  EXPECT_EQ(ask(program, "execveat", {{first ^ (1ULL << 40), 0, 0, 0, second}}), seen(EPERM));
}

TEST(RootRules, ChangesOfOwnersAndIdsAreFakedAndSetIdBitsGoToTheSupervisor) {
  Policy policy;
  policy.isolation.user = policy::InsideUser::root;
  const Filter program = programFor(policy);
  constexpr std::uint32_t kSaid = SECCOMP_RET_ERRNO;
  for (const std::string_view name : {"fchown", "fchownat", "setuid", "setresgid", "setgroups"})
    EXPECT_EQ(ask(program, name), kSaid) << name;
  EXPECT_EQ(ask(program, "fchmod", {{3, 0755}}), kLet);
  EXPECT_EQ(ask(program, "fchmod", {{3, 04755}}), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(ask(program, "fchmodat", {{3, 0, 02755}}), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(ask(program, "mknodat", {{3, 0, S_IFCHR | 0600, 0x103}}), kSaid);
  EXPECT_EQ(ask(program, "mknodat", {{3, 0, S_IFIFO | 0600}}), kLet);
  EXPECT_EQ(ask(program, "openat", {{3, 0, O_CREAT, 04755}}), seen(EPERM));
  EXPECT_EQ(ask(program, "socket", {{AF_NETLINK, SOCK_RAW, 9}}), refused(EPROTONOSUPPORT));
  EXPECT_EQ(ask(program, "socket", {{AF_NETLINK, SOCK_RAW, 6}}), seen(EPERM));
  for (const std::string_view name : {"mount", "unshare", "setns", "pivot_root", "chroot", "ptrace", "bpf"})
    EXPECT_EQ(ask(program, name), ask(programFor(Policy{}), name)) << name;
  policy.syscalls.names = {"read", "write", "exit_group"};
  EXPECT_EQ(ask(programFor(policy), "fchown"), seen(EPERM)) << "not in the list";
}

TEST(RootRules, WithSubordinateIdsOwnersAndIdsReallyChange) {
  Policy policy;
  policy.isolation.user = policy::InsideUser::root;
  auto filter = filterForFull(policy, {});
  ASSERT_TRUE(filter);
  makeIdCalls(*filter);
  const auto program = compile(*filter);
  ASSERT_TRUE(program);
  for (const std::string_view name : {"fchown", "fchownat", "setuid", "setresgid", "setgroups"})
    EXPECT_EQ(ask(*program, name), kLet) << name;
  EXPECT_EQ(ask(*program, "fchmod", {{3, 04755}}), SECCOMP_RET_USER_NOTIF | kServe.error) << "never a setuid bit";
  EXPECT_EQ(ask(*program, "mknodat", {{3, 0, S_IFCHR | 0600, 0x103}}), std::uint32_t{SECCOMP_RET_ERRNO});
  for (const std::string_view name : {"mount", "unshare", "setns", "pivot_root", "chroot", "ptrace", "bpf"})
    EXPECT_EQ(ask(*program, name), ask(programFor(Policy{}), name)) << name;
  policy.syscalls.names = {"read", "write", "exit_group"};
  auto narrow = filterForFull(policy, {});
  ASSERT_TRUE(narrow);
  makeIdCalls(*narrow);
  EXPECT_EQ(ask(*compile(*narrow), "fchown"), seen(EPERM)) << "not in the list";
}

TEST(PolicyLists, ANarrowListLeavesOnlyItsNames) {
  CONFORMS("R-SYSCALL-1");
  Policy policy;
  policy.syscalls.names = {"read", "write", "openat", "exit_group", "mmap"};
  const Filter program = programFor(policy);
  for (const std::string_view name : {"read", "write", "mmap", "exit_group"})
    EXPECT_EQ(ask(program, name), kLet) << name;
  for (const std::string_view name : {"socket", "clone", "getpid", "connect", "ioctl", "mknodat", "seccomp"}) {
    EXPECT_EQ(ask(program, name), seen(EPERM)) << name;
  }
  EXPECT_EQ(ask(program, "openat", {{0, 0, O_CREAT, 04755}}), seen(EPERM));
  EXPECT_EQ(ask(program, "clone3"), refused(ENOSYS));
}

TEST(PolicyLists, ANarrowListDoesNotLoosenWhatDependsOnArguments) {
  Policy policy;
  policy.syscalls.names = {"ioctl", "clone", "socket", "openat", "fchmodat", "mknodat", "prlimit64", "personality"};
  const Filter program = programFor(policy);
  EXPECT_EQ(ask(program, "ioctl", {{0, 0x5412}}), seen(EPERM));
  EXPECT_EQ(ask(program, "clone", {{CLONE_NEWUSER}}), seen(EPERM));
  EXPECT_EQ(ask(program, "socket", {{AF_PACKET, SOCK_DGRAM}}), seen(EAFNOSUPPORT));
  EXPECT_EQ(ask(program, "openat", {{0, 0, O_CREAT, 04755}}), seen(EPERM));
  EXPECT_EQ(ask(program, "fchmodat", {{0, 0, 04755}}), seen(EPERM));
  EXPECT_EQ(ask(program, "mknodat", {{0, 0, S_IFCHR}}), seen(EPERM));
  EXPECT_EQ(ask(program, "prlimit64", {{1}}), seen(EPERM));
  EXPECT_EQ(ask(program, "personality", {{0x40000}}), seen(EPERM));
}

TEST(PolicyLists, DenylistRemovesCallsFromTheBuiltInList) {
  CONFORMS("R-SYSCALL-15");
  Policy policy;
  policy.syscalls.mode = policy::SyscallMode::denylist;
  policy.syscalls.names = {"socket", "getpid"};
  const Filter program = programFor(policy);
  EXPECT_EQ(ask(program, "socket", {{AF_UNIX, SOCK_STREAM}}), seen(EPERM));
  EXPECT_EQ(ask(program, "getpid"), seen(EPERM));
  EXPECT_EQ(ask(program, "getppid"), kLet);
  EXPECT_EQ(ask(program, "ptrace"), seen(EPERM));
}

TEST(PolicyLists, AForbiddenCallIsNeverAllowed) {
  CONFORMS("R-SYSCALL-2", "R-SYSCALL-15");
  for (const std::string_view name : forbiddenSyscalls()) {
    for (const bool listed : {false, true}) {
      Policy policy;
      if (listed) {
        policy.syscalls.names = {std::string(name)};
      } else {
        policy.syscalls.allow = {std::string(name)};
      }
      const auto filter = filterForFull(policy, {});
      ASSERT_FALSE(filter) << name;
      EXPECT_NE(filter.error().message().find(name), std::string::npos);
      EXPECT_NE(filter.error().message().find(listed ? "syscalls.names" : "syscalls.allow"), std::string::npos);
    }
  }
}

TEST(PolicyLists, CallThatHidesItsFlagsFromTheFilterIsNeverAllowed) {
  // clone3 can create namespaces, openat2 setuid files, io_uring both: denied under every policy.
  for (const char* name : {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "openat2"}) {
    Policy policy;
    policy.syscalls.allow = {name};
    const auto filter = filterForFull(policy, {});
    if (!filter) continue;
    EXPECT_NE(ask(*compile(*filter), name), kLet) << name;
  }
}

TEST(PolicyLists, AllowingACallKeepsItsArgumentRules) {
  struct Case {
    const char* name;
    Arguments arguments;
  };
  const Case cases[] = {{"ioctl", {{0, 0x5412}}},
                        {"clone", {{CLONE_NEWUSER}}},
                        {"socket", {{AF_PACKET, SOCK_RAW}}},
                        {"socket", {{AF_ALG, SOCK_DGRAM}}},
                        {"fchmodat", {{0, 0, 04755}}},
                        {"fchmod", {{0, 04755}}},
                        {"openat", {{0, 0, O_CREAT, 04755}}},
                        {"mknodat", {{0, 0, S_IFCHR}}},
                        {"prlimit64", {{1}}}};
  for (const Case& one : cases) {
    Policy policy;
    policy.syscalls.allow = {one.name};
    const auto filter = filterForFull(policy, {});
    if (!filter) continue;
    EXPECT_NE(ask(*compile(*filter), one.name, one.arguments), kLet) << one.name;
  }
}

TEST(PolicyLists, AllowingForkOrExecDoesNotOverrideTheirProhibition) {
  Policy policy;
  policy.process.allow_fork = false;
  policy.process.allow_exec = false;
  policy.syscalls.allow = {"clone", "execve", "execveat"};
  const auto filter = filterForFull(policy, {1, 2});
  if (!filter) return;
  const auto program = compile(*filter);
  EXPECT_NE(ask(*program, "clone", {{17}}), kLet);
  EXPECT_NE(ask(*program, "execve"), kLet);
  EXPECT_NE(ask(*program, "execveat"), kLet);
}

TEST(PolicyLists, AnUnlistedCallIsAllowedByName) {
  Policy policy;
  policy.syscalls.allow = {"rt_sigtimedwait", "vhangup"};
  EXPECT_FALSE(filterForFull(policy, {}));
  policy.syscalls.allow = {"rt_sigtimedwait"};
  EXPECT_EQ(ask(programFor(policy), "rt_sigtimedwait"), kLet);
}

TEST(LandlockTierFilter, AllowsNoSocketsButSocketPairs) {
  const Filter program = programForTier();
  for (std::uint64_t family = 0; family < 64; ++family) {
    EXPECT_NE(ask(program, "socket", {{family, SOCK_STREAM}}), kLet) << family;
    EXPECT_NE(ask(program, "socket", {{family | (1ULL << 32), SOCK_STREAM}}), kLet) << family;
  }
  EXPECT_EQ(ask(program, "socketpair", {{AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}}), kLet);
  EXPECT_NE(ask(program, "socketpair", {{AF_UNIX, SOCK_DGRAM}}), kLet) << "it can be connected to the host's sockets";
}

TEST(LandlockTierFilter, AllowsOnlyTcpThroughTheSupervisorInModeProxy) {
  Policy policy;
  policy.network.mode = policy::NetworkMode::proxy;
  const Filter program = programForTier(policy);
  for (std::uint64_t family = 0; family < 64; ++family) {
    for (const std::uint64_t type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
      const bool tcp = (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM;
      EXPECT_EQ(ask(program, "socket", {{family, type}}) == kLet, tcp) << family << " " << type;
    }
  }
  EXPECT_NE(ask(program, "socket", {{AF_INET, SOCK_STREAM, 262}}), kLet) << "MPTCP";
  EXPECT_EQ(ask(program, "connect"), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(ask(program, "bind"), seen(EACCES));
  EXPECT_EQ(ask(program, "listen"), seen(EACCES));
  EXPECT_EQ(ask(program, "sendto", {{3, 0, 0, MSG_FASTOPEN}}), seen(EOPNOTSUPP));
  EXPECT_EQ(ask(program, "sendto", {{3, 0, 0, MSG_NOSIGNAL}}), kLet);
  EXPECT_EQ(ask(program, "sendmsg", {{3, 0, MSG_FASTOPEN}}), seen(EOPNOTSUPP));
  EXPECT_EQ(ask(program, "sendmmsg", {{3, 0, 1, MSG_FASTOPEN}}), seen(EOPNOTSUPP));
  for (const std::uint64_t option : {23, 30, 33, 34}) {
    EXPECT_EQ(ask(program, "setsockopt", {{3, IPPROTO_TCP, option}}), refused(EOPNOTSUPP)) << option;
  }
  EXPECT_EQ(ask(program, "setsockopt", {{3, IPPROTO_TCP, 1}}), kLet) << "TCP_NODELAY";
}

TEST(LandlockTierFilter, PassesChangesOfFileAttributesToTheSupervisor) {
  const Filter program = programForTier();
  const std::uint32_t served = SECCOMP_RET_USER_NOTIF | kServe.error;
  for (const std::string_view name : {"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown",
                                      "fchownat", "utime", "utimes", "futimesat", "utimensat"}) {
    if (here(name)) {
      EXPECT_EQ(ask(program, name), served) << name;
    }
  }
  EXPECT_EQ(ask(program, "utimensat", {{3, 0}}), served) << "a descriptor opened for reading is enough";
  for (const std::string_view name :
       {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}) {
    EXPECT_EQ(ask(program, name), refused(EOPNOTSUPP)) << name;
  }
  EXPECT_EQ(ask(program, "truncate"), refused(EPERM));
  EXPECT_EQ(ask(program, "openat", {{0, 0, O_RDONLY | O_TRUNC}}), refused(EPERM));
  EXPECT_EQ(ask(program, "openat", {{0, 0, O_WRONLY | O_TRUNC}}), kLet);
  EXPECT_EQ(ask(program, "prlimit64", {{2}}), seen(EPERM));
  for (const std::string_view name : {"shmget", "shmat", "msgget", "semget", "mq_open"}) {
    EXPECT_EQ(ask(program, name), seen(ENOSYS)) << name;
  }
}

TEST(WeakerLevels, ApplyTheSyscallListsOfThePolicy) {
  const std::pair<const char*, Filter (*)(const Policy&)> levels[] = {{"process", programForProcess},
                                                                      {"landlock tier", programForTier}};
  for (const auto& [level, filterOf] : levels) {
    Policy policy;
    policy.process.allow_fork = false;
    policy.process.allow_exec = false;
    Filter program = filterOf(policy);
    EXPECT_EQ(ask(program, "clone", {{17}}), seen(EPERM));
    EXPECT_EQ(ask(program, "execve"), seen(EPERM));

    policy = {};
    policy.syscalls.mode = policy::SyscallMode::denylist;
    policy.syscalls.names = {"getpid", "openat"};
    program = filterOf(policy);
    EXPECT_EQ(ask(program, "getpid"), seen(EPERM));
    EXPECT_EQ(ask(program, "openat"), seen(EPERM)) << level;

    policy = {};
    policy.syscalls.names = {"read", "write", "exit_group"};
    program = filterOf(policy);
    for (const std::string_view name : {"getpid", "openat", "socketpair", "prlimit64", "utimensat", "clone", "ioctl"}) {
      EXPECT_NE(ask(program, name), kLet) << name << " is not listed, " << level;
    }
  }
}

}  // namespace
}  // namespace caisson::plan
