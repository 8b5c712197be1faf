#include "supervise/disk/foreign_files.h"

#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "host/subordinate_ids.h"
#include "sys/pipe.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::raw;

constexpr auto kClaimTime = std::chrono::minutes(10);

bool isDenied(const Error& error) { return error.sys_errno == EACCES || error.sys_errno == EPERM; }

/// In a copy of a process that may have threads: nothing allocates or locks. Waits until its ids are mapped.
[[noreturn]] void claimInChild(int directory, int mapped, int report, const TreeBounds& bounds) {
  const std::uint64_t all = ~0ULL;
  raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, nullptr, sizeof(all));
  raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  char go = 0;
  if (raw(SYS_read, mapped, &go, 1) != 1) raw(SYS_exit_group, 1);
  const TreeSize claimed = measureTree(directory, bounds);
  const unsigned char hidden = claimed.hidden ? 1 : 0;
  raw(SYS_write, report, &hidden, 1);
  for (;;) raw(SYS_exit_group, 0);
}

/// The child; killed and reaped by the destructor.
struct Child {
  pid_t pid;
  ~Child() {
    ::kill(pid, SIGKILL);  // not reaped yet, so its number is not reused
    while (raw(SYS_wait4, pid, nullptr, __WALL, nullptr) == -EINTR) {
    }
  }
};

/// The identity of a sandbox with all ids of the caller.
Result<plan::Identity> mappedIdentity() {
  const plan::SubordinateIds ids = host::observeSubordinateIds(::geteuid(), ::getegid());
  if (!ids.why_not.empty()) {
    return fail(plainError(Stage::state, "user namespace", "files of subordinate ids", ids.why_not,
                           "restore the entries of /etc/subuid and /etc/subgid with which they were made"));
  }
  plan::Identity identity;
  identity.inside_uid = identity.inside_gid = 0;
  identity.outside_uid = ::geteuid();
  identity.outside_gid = ::getegid();
  identity.more_uids = ids.uids;
  identity.more_gids = ids.gids;
  identity.uid_helper = ids.uid_helper;
  identity.gid_helper = ids.gid_helper;
  return identity;
}

Result<void> claim(int directory, TreeBounds bounds) {
  if (::geteuid() == 0) return {};
  bounds.deadline = std::chrono::steady_clock::now() + kClaimTime;
  bounds.owner = ::geteuid();
  const TreeSize found = measureTree(directory, bounds);
  if (!found.foreign && !found.hidden) return {};
  auto identity = mappedIdentity();
  if (!identity && !found.foreign) return {};  // what is hidden is closed to its owner only: the caller
  if (!identity) return fail(identity.error());
  auto mapped = sys::makePipe(Stage::state);
  auto report = sys::makePipe(Stage::state);
  if (!mapped || !report) return fail(mapped ? report.error() : mapped.error());
  bounds.owner = 0;  // the caller, in the child's user namespace
  bounds.give_to_owner = true;
  // newuidmap only serves a process that its user could trace.
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  ::prctl(PR_SET_DUMPABLE, 1);
  const long pid = raw(SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0);
  if (pid == 0) {
    raw(SYS_close, mapped->write.get());
    claimInChild(directory, mapped->read.get(), report->write.get(), bounds);
  }
  ::prctl(PR_SET_DUMPABLE, dumpable);
  if (pid < 0) return fail(sysError(Stage::state, "clone", "user namespace", static_cast<int>(-pid)));
  const Child child{static_cast<pid_t>(pid)};
  report->write.reset();
  if (auto done = host::mapSubordinateIds(*identity, child.pid); !done) return done;
  (void)!::write(mapped->write.get(), "", 1);
  pollfd wait{report->read.get(), POLLIN, 0};
  constexpr int kTimeoutMs = static_cast<int>(std::chrono::milliseconds(kClaimTime).count()) + 1000;
  while (::poll(&wait, 1, kTimeoutMs) < 0 && errno == EINTR) {
  }
  unsigned char hidden = 1;
  const bool reported = wait.revents != 0 && ::read(report->read.get(), &hidden, 1) == 1;
  if (reported && hidden == 0) return {};
  return fail(plainError(Stage::state, "chown", "files of subordinate ids", "not all of them could be reached",
                         "end what writes there, and try again"));
}

}  // namespace

Result<void> claimTree(int directory) { return claim(directory, {}); }

Result<void> claimDirectory(int directory) { return claim(directory, {.top_only = true}); }

Result<void> removeForeignTree(const sys::RootDir& parent, const std::string& name) {
  auto removed = parent.removeTree(name);
  if (removed || !isDenied(removed.error()) || ::geteuid() == 0) return removed;
  auto tree = parent.openFile(name, {.flags = O_PATH, .types = {sys::FileType::directory}});
  if (!tree) return removed;
  if (auto claimed = claimTree(tree->get()); !claimed) return claimed;
  return parent.removeTree(name);
}

Result<void> renameForeign(const sys::RootDir& parent, const std::string& from, const std::string& to) {
  auto renamed = parent.rename(from, to, false);
  if (renamed || !isDenied(renamed.error()) || ::geteuid() == 0) return renamed;
  auto tree = parent.openFile(from, {.flags = O_PATH, .types = {sys::FileType::directory}});
  if (!tree) return renamed;
  if (auto claimed = claimDirectory(tree->get()); !claimed) return claimed;
  return parent.rename(from, to, false);
}

}  // namespace caisson::supervise
