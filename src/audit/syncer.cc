#include "audit/syncer.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/prctl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "audit/head.h"
#include "sys/raw_syscall.h"

namespace caisson::audit {
namespace {

using sys::raw;

// Long enough to cover a burst of runs with one sync, short enough to be durable within a second.
constexpr long kPauseNanoseconds = 300'000'000;

constexpr std::string_view kTitle = "caisson-audit";

constexpr int kSyncedDirectory = 0;
constexpr int kSyncLock = 1;

/// Keeps only these two descriptors, as 0 and 1: this process outlives its starter and must not keep its pipes,
/// terminal or mounts open. A reader of such a pipe would never see end of file.
bool keepOnly(int directory, int sync_lock) {
  // The originals may be 0 or 1 themselves.
  const long spare_directory = raw(SYS_fcntl, directory, F_DUPFD, 3);
  const long spare_lock = raw(SYS_fcntl, sync_lock, F_DUPFD, 3);
  if (spare_directory < 0 || spare_lock < 0) return false;
  if (raw(SYS_dup3, spare_directory, kSyncedDirectory, 0) < 0 || raw(SYS_dup3, spare_lock, kSyncLock, 0) < 0)
    return false;
  return raw(SYS_close_range, 2, ~0U, 0) == 0;
}

/// A region of this process's memory, from /proc.
struct Region {
  std::uint64_t begin = 0, end = 0;
};

/// Writes to an address of this process. Through a pipe: the kernel returns EFAULT where a store would crash. A program
/// that embeds the library may have moved or unmapped its arguments.
bool writeOwn(const int (&pipe)[2], std::uint64_t at, std::string_view bytes) {
  const auto size = static_cast<long>(bytes.size());
  return raw(SYS_write, pipe[1], bytes.data(), bytes.size()) == size &&
         raw(SYS_read, pipe[0], at, bytes.size()) == size;
}

void wipe(const int (&pipe)[2], Region region) {
  static constexpr char kZeros[4096] = {};
  while (region.begin < region.end) {
    const std::uint64_t size = std::min<std::uint64_t>(sizeof(kZeros), region.end - region.begin);
    if (!writeOwn(pipe, region.begin, {kZeros, size})) return;
    region.begin += size;
  }
}

/// Finds the memory of the command line and of the environment: fields 48 to 51 of /proc/self/stat.
bool findArguments(Region& arguments, Region& environment) {
  const long file = raw(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return false;
  char text[2048];
  const long got = raw(SYS_read, file, text, sizeof(text));
  raw(SYS_close, file);
  std::string_view rest(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t name_end = rest.rfind(')');  // the name may contain blanks and parentheses
  if (name_end == std::string_view::npos) return false;
  rest.remove_prefix(name_end + 1);
  std::uint64_t* const wanted[] = {&arguments.begin, &arguments.end, &environment.begin, &environment.end};
  for (std::size_t field = 3; field < 52; ++field) {
    rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(' ')));
    const std::string_view word = rest.substr(0, rest.find(' '));
    if (word.empty()) return false;
    rest.remove_prefix(word.size());
    if (field < 48) continue;
    std::uint64_t& value = *wanted[field - 48];
    for (const char digit : word) {
      if (digit < '0' || digit > '9') return false;
      value = 10 * value + static_cast<std::uint64_t>(digit - '0');
    }
  }
  return arguments.begin < arguments.end;
}

/// Overwrites the command line and clears the environment of this process. It is a copy of its starter, whose arguments
/// may be secret, and every user of the host can read a command line. The starter's memory is not affected.
void forgetArguments() {
  Region arguments, environment;
  int pipe[2];
  if (!findArguments(arguments, environment) || raw(SYS_pipe2, pipe, O_CLOEXEC | O_NONBLOCK) < 0) return;
  wipe(pipe, arguments);
  wipe(pipe, environment);
  // Keep the final 0: without it the kernel also shows the memory after it.
  writeOwn(pipe, arguments.begin, kTitle.substr(0, arguments.end - arguments.begin - 1));
  raw(SYS_close, pipe[0]);
  raw(SYS_close, pipe[1]);
}

void detach() {
  std::uint64_t all = ~0ULL;
  raw(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, nullptr, sizeof(all));
  raw(SYS_setsid);
  raw(SYS_chdir, "/");
}

bool readHeadLocked(int head_file, Head& head) {
  while (const long failed = raw(SYS_flock, head_file, LOCK_EX)) {
    if (failed != -EINTR) return false;
  }
  HeadBytes bytes{};
  const long got = raw(SYS_pread64, head_file, bytes.data(), bytes.size(), 0);
  const auto decoded = decode(bytes);
  if (got <= 0 || !decoded) return false;
  head = *decoded;
  return true;
}

bool syncFile(const char* name) {
  const long file = raw(SYS_openat, kSyncedDirectory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (file < 0) return false;
  const bool done = raw(SYS_fdatasync, file) == 0;
  raw(SYS_close, file);
  return done;
}

/// Pauses and syncs until no new event arrived. The last check and the release of the sync lock happen under the head's
/// lock. Every writer appends under that lock and checks for a running syncer later, so no event is missed.
void syncUntilQuiet() {
  const long head_file = raw(SYS_openat, kSyncedDirectory, kHeadName, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
  if (head_file < 0) return;
  for (;;) {
    timespec pause{0, kPauseNanoseconds};
    raw(SYS_nanosleep, &pause, nullptr);
    Head before;
    if (!readHeadLocked(static_cast<int>(head_file), before)) return;
    raw(SYS_flock, head_file, LOCK_UN);
    char name[kNameBytes];
    writeLogName(before.file, name);
    if (!syncFile(name) || raw(SYS_fdatasync, head_file) != 0) return;
    Head after;
    if (!readHeadLocked(static_cast<int>(head_file), after)) return;
    if (after.writes == before.writes) return;  // the exit releases both locks, the head's last
    raw(SYS_flock, head_file, LOCK_UN);
  }
}

[[noreturn]] void runSyncer() {
  detach();
  forgetArguments();
  raw(SYS_prctl, PR_SET_NAME, kTitle.data(), 0, 0, 0);
  syncUntilQuiet();
  raw(SYS_close, kSyncLock);  // before the exit releases the head's lock
  for (;;) raw(SYS_exit_group, 0);
}

}  // namespace

bool startSyncer(int directory, int sync_lock) {
  // Double fork, so that the caller has no zombie to reap. Raw calls only: a threaded caller's locks may be held
  // forever in the copy. No exit signal: the application must not see a SIGCHLD.
  const long middle = raw(SYS_clone, 0, 0, 0, 0, 0);
  if (middle < 0) return false;
  if (middle == 0) {
    // Here, while the caller waits: a lock of the caller that lived on in a copy would seem held after its release.
    const long child = keepOnly(directory, sync_lock) ? raw(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0) : -1;
    if (child == 0) runSyncer();
    for (;;) raw(SYS_exit_group, child < 0 ? 1 : 0);
  }
  int status = 0;
  while (raw(SYS_wait4, middle, &status, __WALL, nullptr) == -EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace caisson::audit
