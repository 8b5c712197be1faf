// Which calls a payload may make, tested on the compiled programs.
#include <linux/audit.h>
#include <linux/sched.h>

#include <set>

#include "plan/own_filter_testing.h"
#include "plan/syscall_filter_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

class BuiltinFilter : public OnEachArchitecture {};
class HostileCalls : public OnEachArchitecture {};
class EveryProgram : public OnEachArchitecture {};
INSTANTIATE_TEST_SUITE_P(, BuiltinFilter, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, HostileCalls, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);
INSTANTIATE_TEST_SUITE_P(, EveryProgram, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(BuiltinFilter, IsTheFilterOfTheDefaultPolicy) {
  EXPECT_TRUE(usesBuiltinFilter(Policy{}));
  EXPECT_TRUE(sameProgram(builtin(), programFor(Policy{})));
  if (architecture() == kNative) {
    EXPECT_EQ(builtinAllowed(), filterForFull(Policy{}, {})->allowed());
  }
}

TEST_P(BuiltinFilter, IsNotUsedForAPolicyThatChangesIt) {
  for (const auto& change : std::vector<void (*)(Policy&)>{
           [](Policy& p) { p.process.allow_fork = false; }, [](Policy& p) { p.process.allow_exec = false; },
           [](Policy& p) { p.syscalls.allow = {"personality"}; }, [](Policy& p) { p.syscalls.names.emplace(); }}) {
    Policy policy;
    change(policy);
    EXPECT_FALSE(usesBuiltinFilter(policy));
  }
}

TEST_P(BuiltinFilter, ListsNoCallTwice) {
  std::set<std::string_view> seen;
  for (const auto names : {allowedSyscalls(), forbiddenSyscalls()}) {
    for (const std::string_view name : names) {
      EXPECT_TRUE(seen.insert(name).second) << name;
    }
  }
}

TEST_P(BuiltinFilter, LetsEveryListedCallThrough) {
  // With all arguments 0 these are denied; syscall_arguments_test.cc tests them.
  const std::set<std::string_view> by_argument = {"ioctl", "ioprio_set", "socket", "socketpair"};
  const Filter program = builtin();
  for (const std::string_view name : allowedSyscalls()) {
    if (!here(name) || by_argument.contains(name)) continue;
    const bool answered = name == "sysinfo";  // by the supervisor, with the sandbox's values
    EXPECT_EQ(evaluateCall(program, name), answered ? reported(kAnswer.error) : kReturnAllow) << name;
  }
}

TEST_P(BuiltinFilter, AllowsEveryCallThatTheLibraryMayMakeForTheSameFunction) {
  for (const auto& policy : {Policy{}, *policy::builtin("strict"), *policy::builtin("cargo")})
    EXPECT_EQ(missingSiblings(*filterForFull(policy, {1, 2}, architecture())), std::vector<std::string>());
}

TEST_P(BuiltinFilter, RefusesObsoleteCalls) {
  CONFORMS("R-SYSCALL-1");
  const Filter program = builtin();
  for (const std::string_view name :
       {"epoll_ctl_old", "epoll_wait_old", "remap_file_pages", "get_thread_area", "set_thread_area", "get_robust_list",
        "cachestat", "process_mrelease", "set_mempolicy_home_node", "sysfs", "ustat"}) {
    if (here(name)) {
      EXPECT_EQ(evaluateCall(program, name), reported(ENOSYS)) << name;
    }
  }
}

TEST_P(HostileCalls, AreRefusedInEveryProgram) {
  CONFORMS("R-SYSCALL-2");
  for (const auto& [which, program] : everyProgram()) {
    for (const std::string_view name : forbiddenSyscalls()) {
      if (here(name)) {
        EXPECT_EQ(evaluateCall(program, name), reported(EPERM)) << which << ": " << name;
      }
    }
  }
}

TEST_P(HostileCalls, ListIsDeniedAtFullAndProcess) {
  CONFORMS("R-SYSCALL-2");
  // Call by call: a name missing from the tables would be allowed at level `process`.
  const Filter process = programForProcess();
  for (const std::string_view name : {"ptrace",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "kexec_load",
                                      "kexec_file_load",
                                      "open_by_handle_at",
                                      "perf_event_open",
                                      "bpf",
                                      "userfaultfd",
                                      "io_uring_setup",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "mount",
                                      "fsopen",
                                      "fsmount",
                                      "fsconfig",
                                      "fspick",
                                      "move_mount",
                                      "open_tree",
                                      "mount_setattr",
                                      "umount2",
                                      "pivot_root",
                                      "chroot",
                                      "unshare",
                                      "setns",
                                      "clone3",
                                      "keyctl",
                                      "add_key",
                                      "request_key",
                                      "pidfd_getfd",
                                      "init_module",
                                      "finit_module",
                                      "delete_module",
                                      "reboot",
                                      "swapon",
                                      "swapoff",
                                      "quotactl",
                                      "quotactl_fd",
                                      "acct",
                                      "settimeofday",
                                      "clock_settime",
                                      "clock_adjtime",
                                      "adjtimex"}) {
    if (!here(name)) continue;
    EXPECT_NE(evaluateCall(process, name), kReturnAllow) << name;
    EXPECT_NE(evaluateCall(builtin(), name), kReturnAllow) << name;
  }
}

TEST_P(HostileCalls, WithAFallbackInProgramsReturnEnosys) {
  for (const auto& [which, program] : everyProgram()) {
    for (const std::string_view name : {"clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register",
                                        "memfd_secret", "statmount", "listmount", "file_setattr", "setxattrat"}) {
      if (here(name)) {
        const bool recorded = name.starts_with("io_uring_");
        EXPECT_EQ(evaluateCall(program, name), recorded ? reported(ENOSYS) : refused(ENOSYS)) << which << ": " << name;
      }
    }
  }
}

TEST_P(HostileCalls, UnknownNumbersReturnEnosys) {
  CONFORMS("R-SYSCALL-1");
  const std::uint64_t none[6] = {};
  for (int number = 0; number <= 600; ++number) {
    if (!syscallName(number, architecture()).empty()) continue;
    EXPECT_EQ(evaluateNumber(builtin(), number, none), reported(ENOSYS)) << number;
  }
  for (const int number : {1000, 100000, 0x3fffffff}) {
    EXPECT_EQ(evaluateNumber(builtin(), number, none), reported(ENOSYS)) << number;
  }
}

TEST_P(HostileCalls, OfAForeignArchitectureKill) {
  CONFORMS("R-SYSCALL-3");
  const std::uint64_t none[6] = {};
  for (const auto& [which, program] : everyProgram()) {
    for (const std::uint32_t foreign :
         std::initializer_list<std::uint32_t>{AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64}) {
      if (foreign == architectureNumber()) continue;
      for (int number = 0; number <= 500; number += 7) {
        EXPECT_EQ(evaluate(program, foreign, number, none), reported(0)) << which << ": " << number;
      }
    }
    if (architecture() != Architecture::x86_64) continue;
    for (int number = 0; number <= 600; ++number) {
      ASSERT_EQ(evaluateNumber(program, number | 0x40000000, none), reported(0));
    }
  }
}

TEST_P(EveryProgram, FitsIntoTheKernel) {
  for (const auto& [which, program] : everyProgram()) {
    EXPECT_GT(program.size(), 100U) << which;
    EXPECT_LE(program.size(), 4096U) << which;
  }
}

}  // namespace
}  // namespace caisson::plan
