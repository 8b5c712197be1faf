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

class ProcessRules : public OnEachArchitecture {};
class RootRules : public OnEachArchitecture {};
class PolicyLists : public OnEachArchitecture {};
class LandlockTierFilter : public OnEachArchitecture {};
class WeakerLevels : public OnEachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, ProcessRules, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, RootRules, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, PolicyLists, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, LandlockTierFilter, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, WeakerLevels, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(ProcessRules, WithoutForkOnlyThreadsAreMade) {
  CONFORMS("R-PROCESS-5");
  Policy policy;
  policy.process.allow_fork = false;
  const Filter program = programFor(policy);
  if (here("fork")) {
    EXPECT_EQ(evaluateCall(program, "fork"), reported(EPERM));
  }
  if (here("vfork")) {
    EXPECT_EQ(evaluateCall(program, "vfork"), reported(EPERM));
  }
  EXPECT_EQ(evaluateCall(program, "clone", {{17}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "clone", {{CLONE_VM | CLONE_VFORK | 17}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "clone", {{0x3d0f00}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "clone", {{0x3d0f00 | CLONE_NEWUSER}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "clone3"), refused(ENOSYS));
}

TEST_P(ProcessRules, WithoutExecOnlyTheExecWithTheTokenIsAllowed) {
  CONFORMS("R-PROCESS-6");
  Policy policy;
  policy.process.allow_exec = false;
  const ExecToken token{0x12345678, 0x9abcdef0};
  const Filter program = programFor(policy, token);
  const std::uint64_t first = (std::uint64_t{token.first} << 32) | static_cast<std::uint32_t>(AT_FDCWD);
  const std::uint64_t second = std::uint64_t{token.second} << 32;
  EXPECT_EQ(evaluateCall(program, "execveat", {{first, 0, 0, 0, second}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "execve"), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "execve", {{first, 0, 0, 0, second}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "execveat"), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "execveat", {{first, 0, 0, 0, 0}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "execveat", {{static_cast<std::uint32_t>(AT_FDCWD), 0, 0, 0, second}}),
            reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "execveat", {{first ^ (1ULL << 40), 0, 0, 0, second}}), reported(EPERM));
}

TEST_P(RootRules, ChangesOfOwnersAndIdsAreFakedAndSetIdBitsGoToTheSupervisor) {
  Policy policy;
  policy.isolation.user = policy::InsideUser::root;
  const Filter program = programFor(policy);
  constexpr std::uint32_t kFaked = SECCOMP_RET_ERRNO;
  for (const std::string_view name : {"fchown", "fchownat", "setuid", "setresgid", "setgroups"})
    EXPECT_EQ(evaluateCall(program, name), kFaked) << name;
  EXPECT_EQ(evaluateCall(program, "fchmod", {{3, 0755}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "fchmod", {{3, 04755}}), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(evaluateCall(program, "fchmodat", {{3, 0, 02755}}), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(evaluateCall(program, "mknodat", {{3, 0, S_IFCHR | 0600, 0x103}}), kFaked);
  EXPECT_EQ(evaluateCall(program, "mknodat", {{3, 0, S_IFIFO | 0600}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "openat", {{3, 0, O_CREAT, 04755}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_RAW, 9}}), refused(EPROTONOSUPPORT));
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_RAW, 6}}), reported(EPERM));
  for (const std::string_view name : {"mount", "unshare", "setns", "pivot_root", "chroot", "ptrace", "bpf"})
    EXPECT_EQ(evaluateCall(program, name), evaluateCall(programFor(Policy{}), name)) << name;
  policy.syscalls.names = {"read", "write", "exit_group"};
  EXPECT_EQ(evaluateCall(programFor(policy), "fchown"), reported(EPERM)) << "not in the list";
}

TEST_P(RootRules, WithSubordinateIdsOwnersAndIdsReallyChange) {
  Policy policy;
  policy.isolation.user = policy::InsideUser::root;
  auto filter = filterForFull(policy, {}, architecture());
  ASSERT_TRUE(filter);
  makeIdCalls(*filter);
  const auto program = compile(*filter);
  ASSERT_TRUE(program);
  for (const std::string_view name : {"fchown", "fchownat", "setuid", "setresgid", "setgroups"})
    EXPECT_EQ(evaluateCall(*program, name), kReturnAllow) << name;
  EXPECT_EQ(evaluateCall(*program, "fchmod", {{3, 04755}}), SECCOMP_RET_USER_NOTIF | kServe.error)
      << "never a setuid bit";
  EXPECT_EQ(evaluateCall(*program, "mknodat", {{3, 0, S_IFCHR | 0600, 0x103}}), std::uint32_t{SECCOMP_RET_ERRNO});
  for (const std::string_view name : {"mount", "unshare", "setns", "pivot_root", "chroot", "ptrace", "bpf"})
    EXPECT_EQ(evaluateCall(*program, name), evaluateCall(programFor(Policy{}), name)) << name;
  policy.syscalls.names = {"read", "write", "exit_group"};
  auto narrow = filterForFull(policy, {}, architecture());
  ASSERT_TRUE(narrow);
  makeIdCalls(*narrow);
  EXPECT_EQ(evaluateCall(*compile(*narrow), "fchown"), reported(EPERM)) << "not in the list";
}

TEST_P(PolicyLists, ANarrowListLeavesOnlyItsNames) {
  CONFORMS("R-SYSCALL-1");
  Policy policy;
  policy.syscalls.names = {"read", "write", "openat", "exit_group", "mmap"};
  const Filter program = programFor(policy);
  for (const std::string_view name : {"read", "write", "mmap", "exit_group"})
    EXPECT_EQ(evaluateCall(program, name), kReturnAllow) << name;
  for (const std::string_view name : {"socket", "clone", "getpid", "connect", "ioctl", "mknodat", "seccomp"}) {
    EXPECT_EQ(evaluateCall(program, name), reported(EPERM)) << name;
  }
  EXPECT_EQ(evaluateCall(program, "openat", {{0, 0, O_CREAT, 04755}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "clone3"), refused(ENOSYS));
}

TEST_P(PolicyLists, ANarrowListDoesNotLoosenWhatDependsOnArguments) {
  Policy policy;
  policy.syscalls.names = {"ioctl", "clone", "socket", "openat", "fchmodat", "mknodat", "prlimit64", "personality"};
  const Filter program = programFor(policy);
  EXPECT_EQ(evaluateCall(program, "ioctl", {{0, 0x5412}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "clone", {{CLONE_NEWUSER}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_PACKET, SOCK_DGRAM}}), reported(EAFNOSUPPORT));
  EXPECT_EQ(evaluateCall(program, "openat", {{0, 0, O_CREAT, 04755}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "fchmodat", {{0, 0, 04755}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "mknodat", {{0, 0, S_IFCHR}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "prlimit64", {{1}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "personality", {{0x40000}}), reported(EPERM));
}

TEST_P(PolicyLists, DenylistRemovesCallsFromTheBuiltInList) {
  CONFORMS("R-SYSCALL-15");
  Policy policy;
  policy.syscalls.mode = policy::SyscallMode::denylist;
  policy.syscalls.names = {"socket", "getpid"};
  const Filter program = programFor(policy);
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_UNIX, SOCK_STREAM}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "getpid"), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "getppid"), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "ptrace"), reported(EPERM));
}

TEST_P(PolicyLists, AForbiddenCallIsNeverAllowed) {
  CONFORMS("R-SYSCALL-2", "R-SYSCALL-15");
  for (const std::string_view name : forbiddenSyscalls()) {
    for (const bool listed : {false, true}) {
      Policy policy;
      if (listed) {
        policy.syscalls.names = {std::string(name)};
      } else {
        policy.syscalls.allow = {std::string(name)};
      }
      const auto filter = filterForFull(policy, {}, architecture());
      ASSERT_FALSE(filter) << name;
      EXPECT_NE(filter.error().message().find(name), std::string::npos);
      EXPECT_NE(filter.error().message().find(listed ? "syscalls.names" : "syscalls.allow"), std::string::npos);
    }
  }
}

TEST_P(PolicyLists, CallThatHidesItsFlagsFromTheFilterIsNeverAllowed) {
  // clone3 can create namespaces, openat2 setuid files, io_uring both: denied under every policy.
  for (const char* name : {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "openat2"}) {
    Policy policy;
    policy.syscalls.allow = {name};
    const auto filter = filterForFull(policy, {}, architecture());
    if (!filter) continue;
    EXPECT_NE(evaluateCall(*compile(*filter), name), kReturnAllow) << name;
  }
}

TEST_P(PolicyLists, AllowingACallKeepsItsArgumentRules) {
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
    const auto filter = filterForFull(policy, {}, architecture());
    if (!filter) continue;
    EXPECT_NE(evaluateCall(*compile(*filter), one.name, one.arguments), kReturnAllow) << one.name;
  }
}

TEST_P(PolicyLists, AllowingForkOrExecDoesNotOverrideTheirProhibition) {
  Policy policy;
  policy.process.allow_fork = false;
  policy.process.allow_exec = false;
  policy.syscalls.allow = {"clone", "execve", "execveat"};
  const auto filter = filterForFull(policy, {1, 2}, architecture());
  if (!filter) return;
  const auto program = compile(*filter);
  EXPECT_NE(evaluateCall(*program, "clone", {{17}}), kReturnAllow);
  EXPECT_NE(evaluateCall(*program, "execve"), kReturnAllow);
  EXPECT_NE(evaluateCall(*program, "execveat"), kReturnAllow);
}

TEST_P(PolicyLists, AnUnlistedCallIsAllowedByName) {
  Policy policy;
  policy.syscalls.allow = {"rt_sigtimedwait", "vhangup"};
  EXPECT_FALSE(filterForFull(policy, {}, architecture()));
  policy.syscalls.allow = {"rt_sigtimedwait"};
  EXPECT_EQ(evaluateCall(programFor(policy), "rt_sigtimedwait"), kReturnAllow);
}

TEST_P(LandlockTierFilter, AllowsNoSocketsButSocketPairs) {
  const Filter program = programForTier();
  for (std::uint64_t family = 0; family < 64; ++family) {
    EXPECT_NE(evaluateCall(program, "socket", {{family, SOCK_STREAM}}), kReturnAllow) << family;
    EXPECT_NE(evaluateCall(program, "socket", {{family | (1ULL << 32), SOCK_STREAM}}), kReturnAllow) << family;
  }
  EXPECT_EQ(evaluateCall(program, "socketpair", {{AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC}}), kReturnAllow);
  EXPECT_NE(evaluateCall(program, "socketpair", {{AF_UNIX, SOCK_DGRAM}}), kReturnAllow)
      << "it can be connected to the host's sockets";
}

TEST_P(LandlockTierFilter, AllowsOnlyTcpThroughTheSupervisorInModeProxy) {
  Policy policy;
  policy.network.mode = policy::NetworkMode::proxy;
  const Filter program = programForTier(policy);
  for (std::uint64_t family = 0; family < 64; ++family) {
    for (const std::uint64_t type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
      const bool tcp = (family == AF_INET || family == AF_INET6) && type == SOCK_STREAM;
      EXPECT_EQ(evaluateCall(program, "socket", {{family, type}}) == kReturnAllow, tcp) << family << " " << type;
    }
  }
  EXPECT_NE(evaluateCall(program, "socket", {{AF_INET, SOCK_STREAM, 262}}), kReturnAllow) << "MPTCP";
  EXPECT_EQ(evaluateCall(program, "connect"), SECCOMP_RET_USER_NOTIF | kServe.error);
  EXPECT_EQ(evaluateCall(program, "bind"), reported(EACCES));
  EXPECT_EQ(evaluateCall(program, "listen"), reported(EACCES));
  EXPECT_EQ(evaluateCall(program, "sendto", {{3, 0, 0, MSG_FASTOPEN}}), reported(EOPNOTSUPP));
  EXPECT_EQ(evaluateCall(program, "sendto", {{3, 0, 0, MSG_NOSIGNAL}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "sendmsg", {{3, 0, MSG_FASTOPEN}}), reported(EOPNOTSUPP));
  EXPECT_EQ(evaluateCall(program, "sendmmsg", {{3, 0, 1, MSG_FASTOPEN}}), reported(EOPNOTSUPP));
  for (const std::uint64_t option : {23, 30, 33, 34}) {
    EXPECT_EQ(evaluateCall(program, "setsockopt", {{3, IPPROTO_TCP, option}}), refused(EOPNOTSUPP)) << option;
  }
  EXPECT_EQ(evaluateCall(program, "setsockopt", {{3, IPPROTO_TCP, 1}}), kReturnAllow) << "TCP_NODELAY";
}

TEST_P(LandlockTierFilter, PassesChangesOfFileAttributesToTheSupervisor) {
  const Filter program = programForTier();
  const std::uint32_t served = SECCOMP_RET_USER_NOTIF | kServe.error;
  for (const std::string_view name : {"chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown",
                                      "fchownat", "utime", "utimes", "futimesat", "utimensat"}) {
    if (here(name)) {
      EXPECT_EQ(evaluateCall(program, name), served) << name;
    }
  }
  EXPECT_EQ(evaluateCall(program, "utimensat", {{3, 0}}), served) << "a descriptor opened for reading is enough";
  for (const std::string_view name :
       {"setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"}) {
    EXPECT_EQ(evaluateCall(program, name), refused(EOPNOTSUPP)) << name;
  }
  EXPECT_EQ(evaluateCall(program, "truncate"), refused(EPERM));
  EXPECT_EQ(evaluateCall(program, "openat", {{0, 0, O_RDONLY | O_TRUNC}}), refused(EPERM));
  EXPECT_EQ(evaluateCall(program, "openat", {{0, 0, O_WRONLY | O_TRUNC}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "prlimit64", {{2}}), reported(EPERM));
  for (const std::string_view name : {"shmget", "shmat", "msgget", "semget", "mq_open"}) {
    EXPECT_EQ(evaluateCall(program, name), reported(ENOSYS)) << name;
  }
}

TEST_P(WeakerLevels, ApplyTheSyscallListsOfThePolicy) {
  for (const bool tier : {false, true}) {
    const auto filterOf = [&](const Policy& policy) {
      return tier ? programForTier(policy) : programForProcess(policy);
    };
    const std::string level = tier ? "landlock tier" : "process";
    Policy policy;
    policy.process.allow_fork = false;
    policy.process.allow_exec = false;
    Filter program = filterOf(policy);
    EXPECT_EQ(evaluateCall(program, "clone", {{17}}), reported(EPERM));
    EXPECT_EQ(evaluateCall(program, "execve"), reported(EPERM));

    policy = {};
    policy.syscalls.mode = policy::SyscallMode::denylist;
    policy.syscalls.names = {"getpid", "openat"};
    program = filterOf(policy);
    EXPECT_EQ(evaluateCall(program, "getpid"), reported(EPERM));
    EXPECT_EQ(evaluateCall(program, "openat"), reported(EPERM)) << level;

    policy = {};
    policy.syscalls.names = {"read", "write", "exit_group"};
    program = filterOf(policy);
    for (const std::string_view name : {"getpid", "openat", "socketpair", "prlimit64", "utimensat", "clone", "ioctl"}) {
      EXPECT_NE(evaluateCall(program, name), kReturnAllow) << name << " is not listed, " << level;
    }
  }
}

}  // namespace
}  // namespace caisson::plan
