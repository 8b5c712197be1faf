// System calls used for escapes.
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>

#include "base/syscall_names.h"
#include "plan/syscall_filter.h"
#include "plan/syscalls.h"
#include "policy/rules/severity.h"
#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

std::string nameOf(const std::string& text) {
  std::string name;
  for (const char letter : text) name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  return name;
}

// --- new namespaces ---

class NewNamespace : public testing::TestWithParam<std::array<const char*, 2>> {};

/// Most namespaces need a privilege, but none does together with a user namespace.
TEST_P(NewNamespace, CannotBeMade) {
  CONFORMS("R-SYSCALL-2", "R-SYSCALL-13");
  const auto [call, name] = GetParam();
  expectOnlyStoppedBy("seccomp,kernel-quotas", {.verb = {call, name}});
}

INSTANTIATE_TEST_SUITE_P(ByCall, NewNamespace,
                         testing::Values(std::array{"unshare", "user"}, std::array{"unshare", "user,pid"},
                                         std::array{"unshare", "user,mnt"}, std::array{"unshare", "user,net"},
                                         std::array{"unshare", "user,ipc"}, std::array{"unshare", "user,uts"},
                                         std::array{"unshare", "user,cgroup"}, std::array{"unshare", "user,time"},
                                         std::array{"clone", "user"}, std::array{"clone", "user,pid"},
                                         std::array{"clone", "user,mnt"}, std::array{"clone", "user,net"},
                                         std::array{"clone", "user,ipc"}, std::array{"clone", "user,uts"},
                                         std::array{"clone", "user,cgroup"}, std::array{"clone3", "user"},
                                         std::array{"clone3", "user,pid"}, std::array{"clone3", "user,mnt"},
                                         std::array{"clone3", "user,net"}, std::array{"clone3", "user,ipc"},
                                         std::array{"clone3", "user,uts"}, std::array{"clone3", "user,cgroup"},
                                         std::array{"clone3", "user,time"}),
                         [](const auto& test) { return nameOf(std::string(test.param[0]) + "_" + test.param[1]); });

TEST(Namespaces, CannotBeEntered) {
  // For its current namespaces the kernel itself denies `user`; the others need a privilege.
  for (const char* name : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
    EXPECT_TRUE(contained(inSandbox({.verb = {"setns", name}}))) << name;
  }
}

class NestedRoot : public testing::TestWithParam<std::vector<std::string>> {};

/// What the capabilities of a nested user namespace allow. Landlock denies mounts as well, so both layers must be
/// disabled before the attack works.
TEST_P(NestedRoot, CannotRearrangeTheTree) {
  CONFORMS("R-SYSCALL-2", "R-SYSCALL-13");
  std::vector<std::string> verb{"as-nested-root"};
  verb.insert(verb.end(), GetParam().begin(), GetParam().end());
  expectOnlyStoppedBy("seccomp,kernel-quotas,landlock", {.verb = verb});
}

using Words = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(ByCall, NestedRoot,
                         testing::Values(Words{"mount", "tmpfs"}, Words{"fsopen"}, Words{"open-tree"},
                                         Words{"move-mount"}, Words{"pivot-root"}, Words{"chroot"}),
                         [](const auto& test) { return nameOf(test.param[0]); });

// --- single calls ---

struct ForbiddenCall {
  const char* name;
  bool reaches_kernel;  ///< without the filter the kernel returns a different result
  std::vector<std::string> arguments;
};

std::ostream& operator<<(std::ostream& out, const ForbiddenCall& call) { return out << call.name; }

class ForbiddenSyscall : public testing::TestWithParam<ForbiddenCall> {};

/// The arguments are harmless if the call is allowed.
TEST_P(ForbiddenSyscall, IsRefusedBeforeTheKernelLooksAtIt) {
  CONFORMS("R-SYSCALL-2");
  const ForbiddenCall& call = GetParam();
  const auto number = syscallNumber(call.name);
  if (!number) GTEST_SKIP() << "this architecture has no " << call.name;
  std::vector<std::string> verb{"call", std::to_string(*number)};
  verb.insert(verb.end(), call.arguments.begin(), call.arguments.end());
  const RunOutput refused = inSandbox({.verb = verb});
  EXPECT_TRUE(contained(refused));
  const bool critical = policy::severityOf({}, call.name) == policy::Severity::critical;
  EXPECT_EQ(endedByCaisson(refused), critical) << refused.describe();
  if (!critical) {
    EXPECT_TRUE(refused.out.ends_with("EPERM\n") || refused.out.ends_with("ENOSYS\n")) << refused.out;
  }
  if (!call.reaches_kernel || !mayWeaken()) return;
  const RunOutput answered = weakened("seccomp", {.verb = verb});
  EXPECT_LE(answered.exit_status, 1) << answered.describe();
  EXPECT_NE(answered.out, refused.out) << "the kernel refuses in the same way: this call proves nothing";
}

INSTANTIATE_TEST_SUITE_P(
    All, ForbiddenSyscall,
    testing::Values(
        ForbiddenCall{"ptrace", true, {"3", "0x7fffffff"}}, ForbiddenCall{"process_vm_readv", true, {"0x7fffffff"}},
        ForbiddenCall{"process_vm_writev", true, {"0x7fffffff"}}, ForbiddenCall{"process_madvise", true, {"-1"}},
        ForbiddenCall{"kcmp", true, {"0x7fffffff"}}, ForbiddenCall{"pidfd_getfd", true, {"-1"}},
        ForbiddenCall{"move_pages", true, {"0x7fffffff"}}, ForbiddenCall{"migrate_pages", true, {"0x7fffffff"}},
        ForbiddenCall{"open_by_handle_at", false, {"-1"}},
        ForbiddenCall{"name_to_handle_at", true, {"-1", "@", "0", "0", "0xffff"}},
        ForbiddenCall{"perf_event_open", true, {}}, ForbiddenCall{"bpf", false, {"99"}},
        ForbiddenCall{"userfaultfd", true, {"1"}}, ForbiddenCall{"io_uring_setup", true, {}},
        ForbiddenCall{"io_uring_enter", true, {"-1"}}, ForbiddenCall{"io_uring_register", true, {"-1"}},
        ForbiddenCall{"keyctl", true, {"999"}}, ForbiddenCall{"add_key", true, {}},
        ForbiddenCall{"request_key", true, {}}, ForbiddenCall{"kexec_load", false, {"0", "99"}},
        ForbiddenCall{"kexec_file_load", false, {"-1", "-1"}}, ForbiddenCall{"init_module", false, {"0", "0", "@"}},
        ForbiddenCall{"finit_module", false, {"-1", "@"}}, ForbiddenCall{"delete_module", false, {"@none"}},
        ForbiddenCall{"reboot", false, {}}, ForbiddenCall{"swapon", false, {"@/nonexistent"}},
        ForbiddenCall{"swapoff", false, {"@/nonexistent"}}, ForbiddenCall{"quotactl", true, {}},
        ForbiddenCall{"acct", false, {"@/nonexistent"}}, ForbiddenCall{"clock_settime", true, {}},
        ForbiddenCall{"clock_adjtime", true, {}}, ForbiddenCall{"adjtimex", true, {}},
        ForbiddenCall{"settimeofday", false, {}}, ForbiddenCall{"mount", true, {}},
        ForbiddenCall{"umount2", true, {"@/nonexistent"}}, ForbiddenCall{"fsconfig", true, {"-1"}},
        ForbiddenCall{"fsmount", false, {"-1"}}, ForbiddenCall{"fspick", false, {"-1", "@"}},
        ForbiddenCall{"open_tree", true, {"-1", "@x"}}, ForbiddenCall{"mount_setattr", true, {"-1", "@", "0x1000"}},
        ForbiddenCall{"move_mount", false, {"-1"}}, ForbiddenCall{"pivot_root", false, {}},
        ForbiddenCall{"chroot", true, {"@/nonexistent"}}, ForbiddenCall{"unshare", true, {"0"}},
        ForbiddenCall{"setns", true, {"-1"}}, ForbiddenCall{"clone3", true, {}},
        ForbiddenCall{"openat2", true, {"-100"}}, ForbiddenCall{"sethostname", false, {}},
        ForbiddenCall{"fanotify_init", false, {"0xffff"}}, ForbiddenCall{"iopl", true, {"0"}},
        ForbiddenCall{"modify_ldt", true, {"0"}}, ForbiddenCall{"vhangup", false, {}},
        ForbiddenCall{"syslog", false, {"99"}}),
    [](const auto& test) { return std::string(test.param.name); });

/// The filter must also deny calls that the kernel would deny to this payload anyway.
TEST(SyscallFilter, DeniesEveryForbiddenCallWithoutOtherLayers) {
  CONFORMS("R-SYSCALL-2");
  const auto builtin = plan::builtinProgram();
  const std::vector<sock_filter> program(builtin.begin(), builtin.end());
  for (const std::string_view name : plan::forbiddenSyscalls()) {
    const auto number = syscallNumber(name);
    if (!number) continue;
    const std::uint32_t answer = plan::evaluate(program, plan::nativeArchitecture(), *number, {0, 0, 0, 0, 0, 0});
    EXPECT_EQ(answer, SECCOMP_RET_USER_NOTIF | static_cast<std::uint32_t>(EPERM)) << name;
  }
}

TEST(SyscallFilter, ReturnsEnosysForUnknownCalls) {
  CONFORMS("R-SYSCALL-1");
  const RunOutput output = inSandbox({.verb = {"call", "9999"}});
  EXPECT_EQ(output.out, "refused: call 9999: ENOSYS\n") << output.describe();
  const auto builtin = plan::builtinProgram();
  const std::vector<sock_filter> program(builtin.begin(), builtin.end());
  for (const int number : {600, 1000, 9999}) {
    EXPECT_EQ(plan::evaluate(program, plan::nativeArchitecture(), number, {0, 0, 0, 0, 0, 0}),
              SECCOMP_RET_USER_NOTIF | 38U);
  }
}

/// A call that every kernel has, that is harmless, and that is in no list.
TEST(SyscallFilter, RefusesAnUnlistedCallThatTheKernelHas) {
  CONFORMS("R-SYSCALL-1");
  const Attack attack{.verb = {"call", std::to_string(*syscallNumber("remap_file_pages"))}};
  EXPECT_NE(inSandbox(attack).out.find(": ENOSYS\n"), std::string::npos) << inSandbox(attack).describe();
  if (!mayWeaken()) return;
  EXPECT_NE(weakened("seccomp", attack).out.find(": EINVAL\n"), std::string::npos) << "the kernel did not see it";
}

// --- foreign call conventions ---

TEST(ForeignArchitecture, ThirtyTwoBitCallsEndTheSandbox) {
  CONFORMS("R-SYSCALL-3");
  const Attack attack{.verb = {"foreign-call", "i386"}};
  const RunOutput output = inSandbox(attack);
  if (output.exit_status == 3) GTEST_SKIP() << output.out;
  EXPECT_TRUE(endedByCaisson(output)) << output.describe();
  EXPECT_NE(output.err.find("i386 call 20"), std::string::npos) << output.err;
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("architecture-check", attack)));
  // Without a listener only the process is killed.
  const RunOutput without_listener = weakened("reported-violations", attack);
  EXPECT_NE(without_listener.out.find("signal 31"), std::string::npos) << without_listener.describe();
}

/// Most kernels are built without x32 and return ENOSYS; the filter also kills the sandbox.
TEST(ForeignArchitecture, X32CallsEndTheSandbox) {
  CONFORMS("R-SYSCALL-3");
  const Attack attack{.verb = {"foreign-call", "x32"}};
  const RunOutput output = inSandbox(attack);
  if (output.exit_status == 3) GTEST_SKIP() << output.out;
  EXPECT_TRUE(endedByCaisson(output)) << output.describe();
  EXPECT_NE(output.err.find("x32 call 39"), std::string::npos) << output.err;
  if (!mayWeaken()) return;
  EXPECT_FALSE(endedByCaisson(weakened("seccomp", attack)));
}

TEST(Personality, CannotSwitchAddressRandomisationOff) {
  expectOnlyStoppedBy("seccomp", {.verb = {"personality", "0x0040000"}});
  expectOnlyStoppedBy("seccomp", {.verb = {"personality", "0x0400000"}});  // READ_IMPLIES_EXEC
}

// --- sockets ---

struct ForbiddenSocket {
  const char* name;
  int family, type, protocol;
  bool reaches_kernel;
};

std::ostream& operator<<(std::ostream& out, const ForbiddenSocket& socket) { return out << socket.name; }

class ForbiddenSocketFamily : public testing::TestWithParam<ForbiddenSocket> {};

TEST_P(ForbiddenSocketFamily, CannotBeOpened) {
  CONFORMS("R-SYSCALL-12");
  const ForbiddenSocket& wanted = GetParam();
  const Attack attack{
      .verb = {"socket", std::to_string(wanted.family), std::to_string(wanted.type), std::to_string(wanted.protocol)}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  if (!wanted.reaches_kernel || !mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("seccomp", attack)));
}

INSTANTIATE_TEST_SUITE_P(All, ForbiddenSocketFamily,
                         testing::Values(ForbiddenSocket{"netlink_netfilter", AF_NETLINK, SOCK_RAW, 12, true},
                                         ForbiddenSocket{"netlink_uevent", AF_NETLINK, SOCK_RAW, 15, true},
                                         ForbiddenSocket{"netlink_generic", AF_NETLINK, SOCK_RAW, 16, true},
                                         ForbiddenSocket{"netlink_audit", AF_NETLINK, SOCK_DGRAM, 9, false},
                                         ForbiddenSocket{"packet", AF_PACKET, SOCK_RAW, 0, false},
                                         ForbiddenSocket{"packet_datagram", AF_PACKET, SOCK_DGRAM, 0, false},
                                         ForbiddenSocket{"old_packet", AF_INET, SOCK_PACKET, 0, false},
                                         ForbiddenSocket{"raw_icmp", AF_INET, SOCK_RAW, 1, false},
                                         ForbiddenSocket{"raw_icmp6", AF_INET6, SOCK_RAW, 58, false},
                                         ForbiddenSocket{"vsock", AF_VSOCK, SOCK_STREAM, 0, false},
                                         ForbiddenSocket{"alg", AF_ALG, SOCK_SEQPACKET, 0, false},
                                         ForbiddenSocket{"key", AF_KEY, SOCK_RAW, 2, false},
                                         ForbiddenSocket{"xdp", AF_XDP, SOCK_RAW, 0, false},
                                         ForbiddenSocket{"bluetooth", AF_BLUETOOTH, SOCK_RAW, 1, false},
                                         ForbiddenSocket{"can", AF_CAN, SOCK_RAW, 1, false},
                                         ForbiddenSocket{"tipc", AF_TIPC, SOCK_STREAM, 0, false},
                                         ForbiddenSocket{"rds", AF_RDS, SOCK_SEQPACKET, 0, false}),
                         [](const auto& test) { return std::string(test.param.name); });

class InternetProtocol : public testing::TestWithParam<ForbiddenSocket> {};

/// Each is separate kernel code, most of it in a module that the socket would load.
TEST_P(InternetProtocol, ThatNoProgramNeedsIsNotSupported) {
  const ForbiddenSocket& wanted = GetParam();
  const Attack attack{
      .verb = {"socket", std::to_string(wanted.family), std::to_string(wanted.type), std::to_string(wanted.protocol)}};
  EXPECT_EQ(inSandbox(attack).out, "refused: socket: EPROTONOSUPPORT\n");
  if (!mayWeaken() || unprotected(attack).exit_status != 0) return;  // not in this kernel
  EXPECT_TRUE(succeeded(weakened("seccomp", attack)));
}

INSTANTIATE_TEST_SUITE_P(All, InternetProtocol,
                         testing::Values(ForbiddenSocket{"mptcp", AF_INET, SOCK_STREAM, 262},
                                         ForbiddenSocket{"mptcp6", AF_INET6, SOCK_STREAM, 262},
                                         ForbiddenSocket{"sctp", AF_INET, SOCK_STREAM, 132},
                                         ForbiddenSocket{"sctp_packets", AF_INET6, SOCK_SEQPACKET, 132},
                                         ForbiddenSocket{"udp_lite", AF_INET, SOCK_DGRAM, 136},
                                         ForbiddenSocket{"udp_lite6", AF_INET6, SOCK_DGRAM, 136},
                                         ForbiddenSocket{"dccp", AF_INET, SOCK_DCCP, 33},
                                         ForbiddenSocket{"dccp6", AF_INET6, SOCK_DCCP, 33},
                                         ForbiddenSocket{"smc", AF_INET, SOCK_STREAM, 256},
                                         ForbiddenSocket{"l2tp", AF_INET, SOCK_DGRAM, 115}),
                         [](const auto& test) { return std::string(test.param.name); });

/// Go tries MPTCP before TCP: every result of a Go program would list it.
TEST(InternetProtocol, MptcpIsRefusedWithoutRecordAndOthersWithOne) {
  CONFORMS("R-SYSCALL-4");
  const auto violations = [](const std::string& protocol) {
    return runCaisson({"run", "--json", "--workspace", ":none", "--ro", payloadPath(), "--", payloadPath(), "socket",
                       "2", "1", protocol})
        .json()["violations"];
  };
  EXPECT_EQ(violations("262").size(), 0U);
  const auto sctp = violations("132");
  ASSERT_EQ(sctp.size(), 1U) << sctp.dump();
  EXPECT_EQ(sctp[0]["syscall"], "socket") << sctp.dump();
}

TEST(UpperLayerProtocol, CannotBePutUnderTcp) {
  const Attack attack{.verb = {"set-tcp-option", "31", "no-such-protocol"}};
  EXPECT_EQ(inSandbox(attack).out, "refused: setsockopt: ENOPROTOOPT\n");
  if (!mayWeaken()) return;
  EXPECT_EQ(weakened("seccomp", attack).out, "refused: setsockopt: ENOENT\n") << "the kernel looks for a module";
}

// --- priorities ---

class PriorityOfMany : public testing::TestWithParam<std::array<const char*, 5>> {};

/// All processes of a user or of a group would include pid 1.
TEST_P(PriorityOfMany, CannotBeChanged) {
  const auto [name, call, which, who, value] = GetParam();
  const Attack attack{.verb = {"call", std::to_string(*syscallNumber(call)), which, who, value}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  std::vector<std::string> words{"run", "--json", "--workspace", ":none", "--ro", payloadPath(), "--", payloadPath()};
  words.insert(words.end(), attack.verb.begin(), attack.verb.end());
  EXPECT_EQ(runCaisson(words).json()["violations"].size(), 1U) << "the filter refuses it, not only the kernel";
  // The kernel denies it too while pid 1 or its helper thread has more rights: always for io_user, sometimes for user.
  if (!mayWeaken() || std::string(name) == "io_user") return;
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(succeeded(weakened("seccomp", attack))); }));
}

INSTANTIATE_TEST_SUITE_P(All, PriorityOfMany,
                         testing::Values(std::array{"user", "setpriority", "2", "0", "19"},
                                         std::array{"group", "setpriority", "1", "0", "19"},
                                         std::array{"io_user", "ioprio_set", "3", "1000", "0x6000"},
                                         std::array{"io_group", "ioprio_set", "2", "0", "0x6000"}),
                         [](const auto& test) { return std::string(test.param[0]); });

// --- ioctl ---

class UnlistedRequest : public testing::TestWithParam<std::array<const char*, 3>> {};

TEST_P(UnlistedRequest, ReturnsEnotty) {
  const auto [name, path, request] = GetParam();
  const Attack attack{.verb = {"ioctl", path, request}};
  EXPECT_EQ(inSandbox(attack).out, "refused: ioctl: ENOTTY\n");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("seccomp", attack)));
}

INSTANTIATE_TEST_SUITE_P(All, UnlistedRequest,
                         testing::Values(std::array{"line_discipline", "/dev/ptmx", "0x5423"},
                                         std::array{"type_of_namespace", "/proc/self/ns/user", "0xb703"},
                                         std::array{"file_generation", "/tmp", "0x801c581f"}),
                         [](const auto& test) { return std::string(test.param[0]); });

/// Counterpart: socket families that programs need work.
TEST(Sockets, OrdinaryFamiliesWork) {
  for (const Words& wanted :
       {Words{"1", "1", "0"}, Words{"2", "1", "0"}, Words{"10", "2", "0"}, Words{"16", "3", "0"}}) {
    Words verb{"socket"};
    verb.insert(verb.end(), wanted.begin(), wanted.end());
    EXPECT_EQ(inSandbox({.verb = verb}).out, "done\n") << wanted[0];
  }
}

}  // namespace
}  // namespace caisson::test
