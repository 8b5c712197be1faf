// The payload's process up to its exec: applies the last layers, in a fixed order.
#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/child.h"
#include "isolation/helper.h"
#include "plan/syscall_filter.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

struct KernelLimit {
  std::uint64_t soft, hard;
};

void takeStandardStreams(const Block& block, int terminal) {
  if (terminal >= 0) must(block, Stage::launch, "ioctl TIOCSCTTY", "pty", raw(SYS_ioctl, terminal, TIOCSCTTY, 0));
  // The supervisor's descriptors are above 2, so these copies do not overwrite one that is still needed.
  for (int i = 0; i < 3; ++i) {
    const int from = block.terminal[i] ? terminal : block.stdio[i];
    must(block, Stage::launch, "dup3", "standard stream", raw(SYS_dup3, from, i, 0));
  }
  // All others are closed at exec; the control socket is needed until then.
  if (!block.close_descriptors) return;
  must(block, Stage::launch, "close_range", "", raw(SYS_close_range, 3, ~0U, sys::kCloseRangeCloexec));
}

/// Their sources, and everything else that is still needed, have numbers above kMaxPassed.
void takePassedDescriptors(const Block& block) {
  for (std::uint32_t i = 0; i < block.passed_count; ++i) {
    const FlatDescriptor& one = block.passed[i];
    must(block, Stage::launch, "dup3", "passed descriptor", raw(SYS_dup3, one.source, one.number, 0));
  }
}

void resetSignals() {
  // clone reset the handlers, but ignored signals (nohup, background jobs, Python) are inherited.
  const KernelSigaction standard{};
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) raw(SYS_rt_sigaction, signal, &standard, nullptr, 8);
  }
  const std::uint64_t none = 0;
  raw(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, 8);
}

/// Keeps as many of the offered CPUs as the plan wants, including the current one, so that nothing has to migrate.
void settleHere(const Block& block) {
  unsigned here = 0;
  if (raw(SYS_getcpu, &here, nullptr, nullptr) < 0) return;
  std::uint8_t mask[kAffinityBytes] = {};
  std::uint32_t chosen = 0;
  for (unsigned step = 0; step < kAffinityBytes * 8 && chosen < block.affinity_count; ++step) {
    const unsigned cpu = (here + step) % (kAffinityBytes * 8);
    if ((block.affinity[cpu / 8] >> (cpu % 8) & 1U) == 0) continue;
    mask[cpu / 8] = static_cast<std::uint8_t>(mask[cpu / 8] | (1U << (cpu % 8)));
    ++chosen;
  }
  raw(SYS_sched_setaffinity, 0, sizeof(mask), mask);
}

void applyLimits(const Block& block) {
  for (std::uint32_t i = 0; i < block.limit_count; ++i) {
    const FlatLimit& wanted = block.limits[i];
    KernelLimit now{};
    raw(SYS_prlimit64, 0, wanted.resource, nullptr, &now);
    // Never above the caller's own hard limit: raising it needs a privilege that we do not have.
    const std::uint64_t value = wanted.value < now.hard ? wanted.value : now.hard;
    const KernelLimit limit{value, value};
    must(block, Stage::limits, "prlimit64", "rlimit", raw(SYS_prlimit64, 0, wanted.resource, &limit, nullptr));
  }
  if (block.affinity == nullptr) return;
  if (block.affinity_required) {
    must(block, Stage::limits, "sched_setaffinity", "",
         raw(SYS_sched_setaffinity, 0, block.affinity_bytes, block.affinity));
  } else {
    settleHere(block);
  }
}

/// Sets an attribute of a security module that takes effect at exec; the module's own policy decides if it is allowed.
void setExecAttribute(const Block& block, const char* path, const char* value, ErrorCode absent, ErrorCode refused) {
  if (value == nullptr) return;
  const long fd =
      must(block, Stage::identity, "open", path, raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0), absent);
  must(block, Stage::identity, "write", path, raw(SYS_write, fd, value, length(value)), refused);
  closeFd(static_cast<int>(fd));
}

void setSecurityLabels(const Block& block) {
  setExecAttribute(block, "/proc/self/attr/apparmor/exec", block.exec.apparmor_profile, ErrorCode::no_apparmor,
                   ErrorCode::apparmor_refused);
  setExecAttribute(block, "/proc/self/attr/exec", block.exec.selinux_label, ErrorCode::selinux_refused,
                   ErrorCode::selinux_refused);
}

void forbidNewPrivileges(const Block& block) {
  if (!block.no_new_privileges) return;
  must(block, Stage::identity, "prctl", "PR_SET_NO_NEW_PRIVS", raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

long execute(const Block& block, const char* path) {
  if (!block.single_exec) {
    return raw(SYS_execve, path, block.exec.argv, block.exec.envp, 0L, 0L, static_cast<long>(plan::kOwnExecMark));
  }
  // The register halves that the kernel ignores carry the secret token that the filter checks.
  const std::uint64_t directory =
      (static_cast<std::uint64_t>(block.exec_token_first) << 32) | static_cast<std::uint32_t>(AT_FDCWD);
  const std::uint64_t flags = static_cast<std::uint64_t>(block.exec_token_second) << 32;
  return raw(SYS_execveat, directory, path, block.exec.argv, block.exec.envp, flags);
}

bool exists(const char* path) {
  struct stat status;
  return raw(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
}

/// The first candidate that may exist, or the last one. Skips PATH directories without the program: a stat costs a
/// tenth of a failed execve.
const char* const* firstPresent(const char* const* candidate) {
  struct stat status;
  while (candidate[0] != nullptr && candidate[1] != nullptr) {
    const long result = raw(SYS_newfstatat, AT_FDCWD, *candidate, &status, 0);
    if (result != -ENOENT && result != -ENAMETOOLONG) break;
    ++candidate;
  }
  return candidate;
}

}  // namespace

void becomePayload(const Block& block, const Helper& helper, int terminal, Listening& listening,
                   const PayloadHooks& hooks) {
  if (block.new_session) must(block, Stage::launch, "setsid", "", raw(SYS_setsid));
  takeStandardStreams(block, terminal);
  takePassedDescriptors(block);
  resetSignals();
  raw(SYS_umask, 022);
  must(block, Stage::exec, "chdir", block.exec.working_directory, raw(SYS_chdir, block.exec.working_directory),
       ErrorCode::no_working_directory);
  setSecurityLabels(block);
  applyLimits(block);
  // Landlock, then no_new_privs; without a user namespace, the kernel requires no_new_privs first.
  if (!block.own_user_namespace) forbidNewPrivileges(block);
  restrictWithLandlock(block);
  forbidNewPrivileges(block);
  if (block.drop_capabilities) dropCapabilities(block);
  const char* const* const first = firstPresent(block.exec.candidates);
  helper.waitUntilOldRootIsGone();  // before the filter, which may forbid waiting
  selfTest(block);
  if (hooks.before_filter != nullptr) hooks.before_filter(block);
  listening = installFilter(block);
  selfTestOfFilter(block);
  if (hooks.after_filter != nullptr) hooks.after_filter(block, listening);

  long error = -ENOENT;
  ErrorCode code = ErrorCode::program_not_started;
  const char* tried = block.exec.argv[0];
  for (const char* const* candidate = first; *candidate != nullptr; ++candidate) {
    const long result = execute(block, *candidate);
    if (result == -ENOENT && exists(*candidate)) {
      code = ErrorCode::no_interpreter;
      tried = *candidate;
      break;
    }
    const bool more = candidate[1] != nullptr || candidate != block.exec.candidates;
    if (result == -ENOENT || result == -ENOTDIR || (result == -ENAMETOOLONG && more)) continue;
    error = result;  // like a shell: the first existing one decides, but after EACCES the search continues
    tried = *candidate;
    if (result != -EACCES) break;
  }
  reportAndExit(block, Stage::exec, "execve", tried, -error, code);
}

}  // namespace caisson::isolation
