// Keeps commands away from the spawning thread by its number. It is part of pid 1, but in the domain of the commands.
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include <cerrno>
#include <cstddef>

#include "base/native_architecture.h"
#include "session/init/init.h"

namespace caisson::session {
namespace {

struct GuardedCall {
  std::uint32_t number;
  std::uint32_t argument;  ///< which one names a process
};

/// The calls that change another process of the same user without tracing it. Signals are not among them: pid 1 blocks
/// none but SIGCHLD, so that the kernel drops them.
constexpr GuardedCall kGuarded[] = {{SYS_prlimit64, 0},      {SYS_sched_setaffinity, 0},  {SYS_sched_setattr, 0},
                                    {SYS_sched_setparam, 0}, {SYS_sched_setscheduler, 0}, {SYS_setpriority, 1},
                                    {SYS_ioprio_set, 1}};
constexpr std::size_t kCalls = sizeof(kGuarded) / sizeof(kGuarded[0]);

constexpr sock_filter step(std::uint16_t code, std::uint32_t value) { return {code, 0, 0, value}; }
/// Continues after `steps` more if the accumulator is not `value`.
constexpr sock_filter unlessSkip(std::uint32_t value, std::uint8_t steps) {
  return {BPF_JMP | BPF_JEQ | BPF_K, 0, steps, value};
}
constexpr sock_filter load(std::size_t offset) {
  return step(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
/// The kernel ignores the upper half of a number of a process.
constexpr std::size_t lowerHalf(std::uint32_t argument) {
  return offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t);
}

}  // namespace

void guardThread(const isolation::Block& block) {
  if (!block.has_filter) return;
  constexpr std::size_t kPerCall = 5;
  const auto tid = static_cast<std::uint32_t>(raw(SYS_gettid));
  sock_filter program[3 + kPerCall * kCalls + 1];
  std::size_t length = 0;
  program[length++] = load(offsetof(seccomp_data, arch));
  program[length++] =
      unlessSkip(kNativeArchitecture, 1 + kPerCall * kCalls);  // the filter of commands denies the others
  program[length++] = load(offsetof(seccomp_data, nr));
  for (const GuardedCall& call : kGuarded) {
    program[length++] = unlessSkip(call.number, kPerCall - 1);
    program[length++] = load(lowerHalf(call.argument));
    program[length++] = unlessSkip(tid, 1);
    program[length++] = step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    program[length++] = step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  program[length++] = step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog filter{static_cast<unsigned short>(length), program};
  if (block.no_new_privileges) {
    isolation::must(block, Stage::identity, "prctl", "PR_SET_NO_NEW_PRIVS",
                    raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  }
  isolation::must(block, Stage::seccomp, "seccomp", "thread of pid 1",
                  raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
}

}  // namespace caisson::session
