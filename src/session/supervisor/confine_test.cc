#include "session/supervisor/confine.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <csignal>

#include "plan/own_filter_testing.h"

namespace caisson::session {
namespace {

class SupervisorFilter : public testing::TestWithParam<Architecture> {
 protected:
  /// Evaluates the filter for a call; calls that the architecture lacks count as `otherwise`.
  [[nodiscard]] bool allows(std::string_view name, std::uint64_t first = 0, std::uint64_t third = 0,
                            bool otherwise = false) const {
    const auto number = syscallNumber(name, GetParam());
    if (!number) return otherwise;
    const std::uint64_t arguments[6] = {first, 0, third, 0, 0, 0};
    return plan::evaluate(program_, static_cast<std::uint32_t>(GetParam()), *number, arguments) == SECCOMP_RET_ALLOW;
  }
  const std::vector<sock_filter> program_ = *plan::compile(supervisorFilter(GetParam()));
};
INSTANTIATE_TEST_SUITE_P(, SupervisorFilter, testing::ValuesIn(kArchitectures),
                         [](const auto& each) { return std::string(architectureName(each.param)); });

TEST_P(SupervisorFilter, RefusesProgramsTracingNamespacesAndMounts) {
  for (const std::string_view name :
       {"execve",      "execveat",    "ptrace",       "process_vm_writev", "process_madvise", "bpf",
        "unshare",     "setns",       "mount",        "umount2",           "move_mount",      "open_tree",
        "fsopen",      "pivot_root",  "chroot",       "io_uring_setup",    "userfaultfd",     "keyctl",
        "add_key",     "init_module", "finit_module", "kexec_load",        "reboot",          "swapon",
        "personality", "setuid",      "setresuid",    "setgroups",         "capset",          "seccomp",
        "clone3"}) {
    EXPECT_FALSE(allows(name)) << name;
  }
}

TEST_P(SupervisorFilter, RefusesDangerousArguments) {
  EXPECT_TRUE(allows("clone", SIGCHLD));
  for (const std::uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID}) {
    EXPECT_FALSE(allows("clone", flag | SIGCHLD)) << flag;
  }
  EXPECT_TRUE(allows("socket", AF_UNIX));
  EXPECT_TRUE(allows("socket", AF_INET));
  EXPECT_FALSE(allows("socket", AF_NETLINK));
  EXPECT_FALSE(allows("socket", AF_PACKET));
  EXPECT_TRUE(allows("mmap", 0, PROT_READ | PROT_WRITE));
  EXPECT_FALSE(allows("mmap", 0, PROT_READ | PROT_EXEC));
  EXPECT_FALSE(allows("mprotect", 0, PROT_READ | PROT_EXEC));
}

TEST_P(SupervisorFilter, AllowsWhatSupervisionNeeds) {
  for (const std::string_view name :
       {"openat2", "sendmsg", "recvmsg", "epoll_pwait", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "wait4",
        "perf_event_open", "process_vm_readv", "ioctl", "fdatasync", "flock", "renameat2", "memfd_create"}) {
    EXPECT_TRUE(allows(name)) << name;
  }
}

TEST_P(SupervisorFilter, AllowsEveryCallThatTheLibraryMayMakeForTheSameFunction) {
  EXPECT_EQ(plan::missingSiblings(supervisorFilter(GetParam())), std::vector<std::string>());
  EXPECT_EQ(plan::unnoticedRemovals(supervisorFilter(GetParam())), std::vector<std::string>());
}

}  // namespace
}  // namespace caisson::session
