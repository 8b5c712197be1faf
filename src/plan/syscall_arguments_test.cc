// Calls that are allowed only with some arguments.
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "plan/syscall_filter_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

class HostileArguments : public OnEachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, HostileArguments, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(HostileArguments, TerminalInputInjectionIsDeniedWithAnyHighBits) {
  for (const auto& [which, program] : everyProgram()) {
    for (const std::uint64_t command : {0x5412ULL, 0x541cULL}) {  // TIOCSTI, TIOCLINUX
      for (const std::uint64_t high : {0ULL, 1ULL << 32, 0xdeadbeefULL << 32, 0xffffffffULL << 32}) {
        EXPECT_EQ(evaluateCall(program, "ioctl", {{0, command | high}}), reported(EPERM))
            << which << ": " << std::hex << command;
      }
    }
    EXPECT_EQ(evaluateCall(program, "ioctl", {{0, TIOCGWINSZ}}), kReturnAllow) << which;
    EXPECT_EQ(evaluateCall(program, "ioctl", {{0, 0x5401}}), kReturnAllow) << which;
  }
}

TEST_P(HostileArguments, OnlyListedIoctlRequestsReachTheKernel) {
  const std::pair<const char*, std::uint64_t> unlisted[] = {
      {"TIOCSETD", 0x5423},
      {"TIOCCONS", 0x541d},
      {"FIFREEZE", 0xc0045877},
      {"FIDEDUPERANGE", 0xc0189436},
      {"FS_IOC_SETFLAGS", 0x40086602},
      {"NS_GET_USERNS", 0xb701},
      {"KVM_CREATE_VM", 0xae01},
      {"TUNSETIFF", 0x400454ca},
      {"SIOCSIFFLAGS", 0x8914},
      {"SIOCBRADDBR", 0x89a0},
      {"PAGEMAP_SCAN", 0xc0606610},
      {"nothing", 0},
  };
  for (const auto& [which, program] : everyProgram()) {
    for (const auto& [name, request] : unlisted) {
      EXPECT_EQ(evaluateCall(program, "ioctl", {{0, request}}), refused(ENOTTY)) << which << ": " << name;
      EXPECT_EQ(evaluateCall(program, "ioctl", {{0, request | (1ULL << 32)}}), refused(ENOTTY))
          << which << ": " << name;
    }
    EXPECT_EQ(evaluateCall(program, "ioctl", {{0, 0x8946}}), refused(EOPNOTSUPP)) << which << ": SIOCETHTOOL";
    EXPECT_EQ(evaluateCall(program, "ioctl", {{0, FIONREAD}}), kReturnAllow) << which;
    EXPECT_EQ(evaluateCall(program, "ioctl", {{0, 0x40049409}}), kReturnAllow) << which << ": FICLONE";
  }
}

TEST_P(HostileArguments, NoPriorityOfWholeUserOrGroup) {
  for (const auto& [which, program] : everyProgram()) {
    if (which == "strict") continue;  // its list has neither call
    for (const std::uint64_t high : {0ULL, 1ULL << 32}) {
      EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_USER | high, 0, 19}}), reported(EPERM)) << which;
      EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_PGRP | high, 0, 19}}), reported(EPERM)) << which;
      EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_PROCESS | high, 1 | high, 19}}), reported(EPERM)) << which;
      EXPECT_EQ(evaluateCall(program, "ioprio_set", {{2 | high, 0}}), reported(EPERM)) << which << ": IOPRIO_WHO_PGRP";
      EXPECT_EQ(evaluateCall(program, "ioprio_set", {{3 | high, 0}}), reported(EPERM)) << which << ": IOPRIO_WHO_USER";
      EXPECT_EQ(evaluateCall(program, "ioprio_set", {{1 | high, 1 | high}}), reported(EPERM)) << which;
    }
    EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_PROCESS, 0, 19}}), kReturnAllow) << which;
    EXPECT_EQ(evaluateCall(program, "ioprio_set", {{1, 0}}), kReturnAllow) << which;
  }
}

TEST_P(HostileArguments, NoInternetProtocolButTcpAndUdp) {
  const Filter program = builtin();
  for (const std::uint64_t family : {AF_INET, AF_INET6}) {
    for (const std::uint64_t flags : {0, SOCK_CLOEXEC | SOCK_NONBLOCK}) {
      for (std::uint64_t protocol = 0; protocol < 300; ++protocol) {
        const bool mptcp = protocol == 262;
        const std::uint32_t unlisted = mptcp ? refused(EPROTONOSUPPORT) : reported(EPROTONOSUPPORT);
        const bool ping = protocol == (family == AF_INET ? 1U : 58U);
        const bool stream = protocol == 0 || protocol == IPPROTO_TCP;
        const bool datagram = protocol == 0 || protocol == IPPROTO_UDP;
        EXPECT_EQ(evaluateCall(program, "socket", {{family, SOCK_STREAM | flags, protocol}}),
                  stream ? kReturnAllow : unlisted)
            << family << " " << protocol;
        EXPECT_EQ(evaluateCall(program, "socket", {{family, SOCK_DGRAM | flags, protocol}}),
                  datagram ? kReturnAllow : (ping ? reported(EACCES) : unlisted))
            << family << " " << protocol;
        EXPECT_EQ(evaluateCall(program, "socket", {{family, SOCK_SEQPACKET | flags, protocol}}), unlisted)
            << family << " " << protocol;
      }
    }
  }
}

TEST_P(HostileArguments, LocalSocketsAreStreamDatagramOrSequencedPacket) {
  const Filter program = builtin();
  for (const std::string_view call : {"socket", "socketpair"}) {
    for (const std::uint64_t type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      EXPECT_EQ(evaluateCall(program, call, {{AF_UNIX, type | SOCK_CLOEXEC, 0}}), kReturnAllow) << call << " " << type;
    }
    for (const std::uint64_t type : {0, 3, 4, 6, 7, 10, 15}) {
      EXPECT_NE(evaluateCall(program, call, {{AF_UNIX, type, 0}}), kReturnAllow) << call << " " << type;
    }
  }
}

TEST_P(HostileArguments, NoUpperLayerProtocolUnderTcp) {
  for (const auto& [which, program] : everyProgram()) {
    if (which == "strict") continue;  // its list lacks the call
    EXPECT_EQ(evaluateCall(program, "setsockopt", {{3, IPPROTO_TCP, 31}}), reported(ENOPROTOOPT)) << which;
    EXPECT_EQ(evaluateCall(program, "setsockopt", {{3, IPPROTO_TCP | (1ULL << 32), 31 | (1ULL << 32)}}),
              reported(ENOPROTOOPT));
    EXPECT_EQ(evaluateCall(program, "setsockopt", {{3, IPPROTO_TCP, 1}}), kReturnAllow) << which << ": TCP_NODELAY";
  }
}

TEST_P(HostileArguments, NoNewNamespaceByClone) {
  for (const auto& [which, program] : everyProgram()) {
    for (const std::uint64_t flag :
         {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
      for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{17}, std::uint64_t{CLONE_VM | CLONE_THREAD},
                                       std::uint64_t{0xffffffff} << 32}) {
        EXPECT_EQ(evaluateCall(program, "clone", {{flag | more}}), reported(EPERM))
            << which << ": " << std::hex << flag;
      }
    }
    EXPECT_EQ(evaluateCall(program, "clone", {{17}}), kReturnAllow) << which;
    EXPECT_EQ(evaluateCall(program, "clone", {{0x3d0f00}}), kReturnAllow) << which << ": a thread";
  }
}

TEST_P(HostileArguments, NoSocketFamilyBeyondLocalInternetAndTheRoutingTable) {
  const Filter program = builtin();
  for (std::uint64_t family = 0; family < 64; ++family) {
    const bool fine = family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    for (const int type : {int{SOCK_STREAM}, int{SOCK_DGRAM}, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}) {
      if (family == AF_NETLINK && (type & SOCK_STREAM) != 0) continue;  // of netlink there is no stream
      EXPECT_EQ(evaluateCall(program, "socket", {{family, static_cast<std::uint64_t>(type), 0}}),
                fine ? kReturnAllow : reported(EAFNOSUPPORT))
          << family;
    }
    EXPECT_EQ(evaluateCall(program, "socketpair", {{family, SOCK_STREAM, 0}}),
              family == AF_UNIX ? kReturnAllow : reported(EAFNOSUPPORT));
  }
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_STREAM, 0}}), reported(EAFNOSUPPORT));
  // High bits must not select another family.
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_PACKET | (1ULL << 32), SOCK_DGRAM, 0}}), reported(EAFNOSUPPORT));
}

/// All processes of the user have numbers there.
TEST_P(HostileArguments, OnlyTheCallerCanBeRescheduledInTheLandlockTier) {
  constexpr std::uint64_t kHigh = 1ULL << 32, kOther = 77;
  const Filter program = programForTier();
  for (const char* call : {"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"}) {
    EXPECT_EQ(evaluateCall(program, call, {{kOther}}), reported(EPERM)) << call;
    EXPECT_EQ(evaluateCall(program, call, {{kHigh}}), kReturnAllow) << call << ": the kernel ignores the upper half";
    EXPECT_EQ(evaluateCall(program, call, {{0}}), kReturnAllow) << call;
  }
  EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_PROCESS, kOther, 19}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "ioprio_set", {{1, kOther}}), reported(EPERM));
  EXPECT_EQ(evaluateCall(program, "setpriority", {{PRIO_PROCESS, 0, 19}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(program, "ioprio_set", {{1, 0}}), kReturnAllow);
}

TEST_P(HostileArguments, IsolatedCommandsLimitOnlyThemselves) {
  Policy policy;
  policy.process.isolate_commands = true;
  for (const Filter& program : {programFor(policy), programForProcess(policy)}) {
    EXPECT_EQ(evaluateCall(program, "prlimit64", {{77}}), reported(EPERM));
    EXPECT_EQ(evaluateCall(program, "prlimit64", {{0}}), kReturnAllow);
  }
  EXPECT_EQ(evaluateCall(builtin(), "prlimit64", {{77}}), kReturnAllow);
}

TEST_P(HostileArguments, NoLeaseOrNotificationOnSharedFiles) {
  constexpr std::uint64_t kHigh = 1ULL << 32;
  for (const auto& [which, program] : everyProgram()) {
    for (const std::uint64_t command : {F_SETLEASE, F_NOTIFY}) {
      EXPECT_EQ(evaluateCall(program, "fcntl", {{3, command}}), refused(EINVAL)) << which;
      EXPECT_EQ(evaluateCall(program, "fcntl", {{3, command | kHigh}}), refused(EINVAL)) << which;
    }
    for (const std::uint64_t command : {F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_SETLK, F_GETLEASE, F_SETPIPE_SZ}) {
      EXPECT_EQ(evaluateCall(program, "fcntl", {{3, command}}), kReturnAllow) << which;
    }
  }
}

TEST_P(HostileArguments, NoPeekOffsetThatHidesDescriptorsInFlight) {
  constexpr std::uint64_t kHigh = 1ULL << 32;
  for (const auto& [which, program] : everyProgram()) {
    EXPECT_NE(evaluateCall(program, "setsockopt", {{3, SOL_SOCKET, SO_PEEK_OFF}}), kReturnAllow) << which;
    EXPECT_NE(evaluateCall(program, "setsockopt", {{3, SOL_SOCKET | kHigh, SO_PEEK_OFF | kHigh}}), kReturnAllow)
        << which;
  }
  EXPECT_EQ(evaluateCall(builtin(), "setsockopt", {{3, SOL_SOCKET, SO_PEEK_OFF}}), refused(EOPNOTSUPP));
  EXPECT_EQ(evaluateCall(builtin(), "setsockopt", {{3, SOL_SOCKET, SO_REUSEADDR}}), kReturnAllow);
  EXPECT_EQ(evaluateCall(builtin(), "setsockopt", {{3, IPPROTO_TCP, SO_PEEK_OFF}}), kReturnAllow);
}

TEST_P(HostileArguments, NoRawSocketsAndOfNetlinkOnlyRouting) {
  CONFORMS("R-SYSCALL-12");
  const Filter program = builtin();
  for (const std::uint64_t family : {AF_UNIX, AF_INET, AF_INET6, AF_PACKET}) {
    EXPECT_NE(evaluateCall(program, "socket", {{family, SOCK_RAW, 0}}), kReturnAllow) << family;
    EXPECT_NE(evaluateCall(program, "socket", {{family, SOCK_RAW | SOCK_CLOEXEC, 0}}), kReturnAllow) << family;
    EXPECT_NE(evaluateCall(program, "socket", {{family, SOCK_PACKET, 0}}), kReturnAllow) << family;
  }
  EXPECT_EQ(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE}}), kReturnAllow);
  for (const std::uint64_t protocol :
       {NETLINK_SOCK_DIAG, NETLINK_NETFILTER, NETLINK_AUDIT, NETLINK_KOBJECT_UEVENT, NETLINK_CRYPTO, NETLINK_GENERIC}) {
    EXPECT_NE(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_RAW, protocol}}), kReturnAllow) << protocol;
    EXPECT_NE(evaluateCall(program, "socket", {{AF_NETLINK, SOCK_DGRAM, protocol}}), kReturnAllow) << protocol;
  }
}

TEST_P(HostileArguments, NoPingSockets) {
  const Filter program = builtin();
  for (const auto flags : {std::uint64_t{0}, std::uint64_t{SOCK_CLOEXEC}, std::uint64_t{SOCK_NONBLOCK}}) {
    EXPECT_EQ(evaluateCall(program, "socket", {{AF_INET, SOCK_DGRAM | flags, IPPROTO_ICMP}}), reported(EACCES));
    EXPECT_EQ(evaluateCall(program, "socket", {{AF_INET6, SOCK_DGRAM | flags, IPPROTO_ICMPV6}}), reported(EACCES));
    EXPECT_EQ(evaluateCall(program, "socket", {{AF_INET, SOCK_DGRAM | flags, IPPROTO_UDP}}), kReturnAllow);
    EXPECT_EQ(evaluateCall(program, "socket", {{AF_INET6, SOCK_STREAM | flags, IPPROTO_TCP}}), kReturnAllow);
  }
}

TEST_P(HostileArguments, NoSetuidOrSetgidBitByAnyCall) {
  struct Maker {
    std::string_view name;
    int mode;        ///< which argument
    Arguments base;  ///< the others
  };
  const std::uint64_t create = O_CREAT | O_WRONLY;
  const std::uint64_t temporary = O_TMPFILE | O_WRONLY;
  const Maker makers[] = {{"chmod", 1, {}},
                          {"fchmod", 1, {}},
                          {"fchmodat", 2, {}},
                          {"fchmodat2", 2, {}},
                          {"creat", 1, {}},
                          {"open", 2, {{0, create}}},
                          {"open", 2, {{0, temporary}}},
                          {"openat", 3, {{0, 0, create}}},
                          {"openat", 3, {{0, 0, temporary}}},
                          {"mknod", 1, {}},
                          {"mknodat", 2, {}}};
  for (const auto& [which, program] : everyProgram()) {
    for (const Maker& maker : makers) {
      if (!here(maker.name)) continue;
      for (const std::uint64_t bits : {04755ULL, 02755ULL, 06711ULL, 04000ULL, 02000ULL, 04755ULL | (1ULL << 32)}) {
        Arguments arguments = maker.base;
        arguments.values[maker.mode] = bits;
        EXPECT_EQ(evaluateCall(program, maker.name, arguments), reported(EPERM))
            << which << ": " << maker.name << " " << std::oct << bits;
      }
    }
  }
  for (const Maker& maker : makers) {
    if (!here(maker.name)) continue;
    Arguments arguments = maker.base;
    arguments.values[maker.mode] = 01777;
    EXPECT_EQ(evaluateCall(builtin(), maker.name, arguments), kReturnAllow) << maker.name;
  }
}

TEST_P(HostileArguments, IgnoredModeDoesNotDenyAnOpen) {
  // Without O_CREAT, libc leaves the register of the mode undefined.
  if (here("open")) {
    EXPECT_EQ(evaluateCall(builtin(), "open", {{0, O_RDONLY, 07777}}), kReturnAllow);
  }
  EXPECT_EQ(evaluateCall(builtin(), "openat", {{0, 0, O_RDONLY | O_DIRECTORY, 07777}}), kReturnAllow);
}

TEST_P(HostileArguments, NoDeviceIsMade) {
  for (const auto& [which, program] : everyProgram()) {
    for (const std::uint64_t type : {S_IFCHR, S_IFBLK}) {
      if (here("mknod")) {
        EXPECT_EQ(evaluateCall(program, "mknod", {{0, type | 0644}}), reported(EPERM)) << which;
      }
      EXPECT_EQ(evaluateCall(program, "mknodat", {{0, 0, type | 0644}}), reported(EPERM)) << which;
      EXPECT_EQ(evaluateCall(program, "mknodat", {{0, 0, type | 0644 | (1ULL << 32)}}), reported(EPERM)) << which;
    }
  }
  for (const std::uint64_t type :
       {std::uint64_t{0}, std::uint64_t{S_IFREG}, std::uint64_t{S_IFIFO}, std::uint64_t{S_IFSOCK}}) {
    EXPECT_EQ(evaluateCall(builtin(), "mknodat", {{0, 0, type | 0644}}), kReturnAllow);
  }
}

TEST_P(HostileArguments, LimitsOfPidOneCannotBeChanged) {
  for (const auto& [which, program] : everyProgram()) {
    EXPECT_EQ(evaluateCall(program, "prlimit64", {{1}}), reported(EPERM)) << which;
    EXPECT_EQ(evaluateCall(program, "prlimit64", {{1 | (1ULL << 32)}}), reported(EPERM)) << which;
    EXPECT_EQ(evaluateCall(program, "prlimit64", {{0}}), kReturnAllow) << which;
  }
}

TEST_P(HostileArguments, OnlyOrdinaryPersonalities) {
  const Filter program = builtin();
  for (const std::uint64_t fine : {0ULL, 0x8ULL, 0x20000ULL, 0x20008ULL, 0xffffffffULL}) {
    EXPECT_EQ(evaluateCall(program, "personality", {{fine}}), kReturnAllow) << std::hex << fine;
  }
  for (const std::uint64_t bad : {0x0400000ULL /* READ_IMPLIES_EXEC */, 0x0040000ULL /* no randomisation */,
                                  0x0100000ULL /* MMAP_PAGE_ZERO */, 0x1000000ULL}) {
    EXPECT_EQ(evaluateCall(program, "personality", {{bad}}), reported(EPERM)) << std::hex << bad;
  }
}

}  // namespace
}  // namespace caisson::plan
