// pid 1 of a session has a second thread, which spawns the commands and is in their Landlock domain. Commands can find
// its number, but do nothing with it.
#include <gtest/gtest.h>

#include <fstream>

#include "support/environment.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

/// Finds numbers that can be signalled but are not shown in /proc, and tries everything on them.
constexpr const char* kAttack = R"(
import ctypes, os, platform, resource
set_attributes, set_io_priority = (314, 251) if platform.machine() == 'x86_64' else (274, 30)
libc = ctypes.CDLL(None, use_errno=True)
def raw(*arguments):
    if libc.syscall(*map(ctypes.c_long, arguments)) < 0: raise OSError(ctypes.get_errno(), 'refused')
idle = (ctypes.c_uint32 * 12)(48, 5)  # struct sched_attr: its size, SCHED_IDLE
def tried(call):
    try: call()
    except PermissionError: return 'denied'
    return 'DONE'
hidden = []
for n in range(2, 200):
    if os.path.exists(f'/proc/{n}'): continue
    try: os.kill(n, 0)
    except OSError: continue
    hidden.append(n)
for n in hidden:
    print('limit', tried(lambda: resource.prlimit(n, resource.RLIMIT_NOFILE, (64, 64))))
    print('cpu limit', tried(lambda: resource.prlimit(n, resource.RLIMIT_CPU, (1, 1))))
    print('policy', tried(lambda: os.sched_setscheduler(n, os.SCHED_IDLE, os.sched_param(0))))
    print('parameters', tried(lambda: os.sched_setparam(n, os.sched_param(0))))
    print('affinity', tried(lambda: os.sched_setaffinity(n, {min(os.sched_getaffinity(0))})))
    print('nice', tried(lambda: os.setpriority(os.PRIO_PROCESS, n, 19)))
    print('attributes', tried(lambda: raw(set_attributes, n, ctypes.addressof(idle), 0)))
    print('input and output', tried(lambda: raw(set_io_priority, 1, n, 3 << 13)))
    for i in range(5000):
        try: os.kill(n, 40)
        except OSError: break
print(len(hidden), 'thread')
)";
constexpr const char* kAllDenied =
    "limit denied\ncpu limit denied\npolicy denied\nparameters denied\naffinity denied\nnice denied\n"
    "attributes denied\ninput and output denied\n1 thread\n";

constexpr const char* kScheduling =
    "import os; print(os.sched_getscheduler(0), os.nice(0), len(os.sched_getaffinity(0)))";

/// Signals that are queued for processes of this user.
long queuedSignals() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigQ:")) return std::stol(line.substr(5));
  }
  return -1;
}

class InitThread : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    requireOrSkip(hasProgram("python3"), "no python3");
  }
  const SessionCli cli;
};

TEST_F(InitThread, CannotBeAffectedByCommands) {
  const std::string id = cli.create();
  const std::string before = cli.exec(id, {"python3", "-c", kScheduling}).out;
  const long queued = queuedSignals();
  const RunOutput attack = cli.exec(id, {"python3", "-c", kAttack});
  EXPECT_EQ(attack.out, kAllDenied) << attack.describe();
  EXPECT_LT(queuedSignals(), queued + 1000) << "signals stay queued at pid 1";
  EXPECT_EQ(cli.exec(id, {"python3", "-c", kScheduling}).out, before) << "later commands are scheduled differently";
}

}  // namespace
}  // namespace caisson::test
