// A sandbox that outlives its first command: pid 1 executes a session's init program.
#include <fcntl.h>
#include <linux/prctl.h>

#include <cerrno>

#include "isolation/child.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

constexpr int kFirst = 3;
constexpr int kCount = 2;
constexpr int kAbove = 64;  // above every target number

}  // namespace

void becomeInitProgram(const Block& block) {
  const int wanted[kCount] = {block.control, block.init_program.descriptor};
  long high[kCount];
  for (int i = 0; i < kCount; ++i) {
    high[i] = must(block, Stage::launch, "fcntl", "F_DUPFD", raw(SYS_fcntl, wanted[i], F_DUPFD_CLOEXEC, kAbove));
  }
  const long program = must(block, Stage::launch, "fcntl", "F_DUPFD",
                            raw(SYS_fcntl, block.init_program.program, F_DUPFD_CLOEXEC, kAbove));
  // The original number may be overwritten below; the copy is used for errors until exec.
  const_cast<Block&>(block).control = static_cast<int>(high[0]);
  for (int i = 0; i < kCount; ++i) {
    must(block, Stage::launch, "dup3", "init program", raw(SYS_dup3, high[i], kFirst + i, 0));
  }
  must(block, Stage::launch, "close_range", "", raw(SYS_close_range, 0, kFirst - 1, 0));
  must(block, Stage::launch, "close_range", "", raw(SYS_close_range, kFirst + kCount, ~0U, sys::kCloseRangeCloexec));
  must(block, Stage::identity, "prctl", "PR_SET_NO_NEW_PRIVS", raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  // The program applies Landlock itself: it enters a domain before the first command, and a new one when the workspace
  // is remounted, since rules refer to the mounts of that moment.
  dropCapabilities(block);
  if (hasOtherCapabilities(block.kept_capabilities))
    reportAndExit(block, Stage::identity, "capset", "a capability is left", EPERM);
  const char* const environment[] = {nullptr};
  const long error = raw(SYS_execveat, program, "", block.init_program.argv, environment, AT_EMPTY_PATH);
  reportAndExit(block, Stage::launch, "execveat", "pid 1 of the session", -error);
}

}  // namespace caisson::isolation
