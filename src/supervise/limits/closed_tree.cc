#include "supervise/limits/closed_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::raw;

constexpr int kHelperKillTimeoutMs = 1000;
constexpr auto kHelperTimeout = std::chrono::seconds(5);
constexpr int kMaxHelpers = 2;
constexpr std::uint64_t kPausePerCost = 10;
constexpr std::size_t kMaxTrees = 256;

long writeFile(const char* path, const char* text, std::size_t length) {
  const long fd = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  const long written = raw(SYS_write, fd, text, length);
  raw(SYS_close, fd);
  return written < 0 ? written : 0;
}

long writeIdMap(const char* path, std::uint32_t id) {
  char text[32];
  char* end = std::to_chars(text, text + 10, id).ptr;
  *end++ = ' ';
  end = std::to_chars(end, end + 10, id).ptr;
  std::memcpy(end, " 1", 2);
  return writeFile(path, text, static_cast<std::size_t>(end + 2 - text));
}

/// A helper must not keep pipes and sockets of other processes open: their readers wait for the end of file.
void closeAllBut(int one, int other) {
  const auto low = static_cast<unsigned>(std::min(one, other)), high = static_cast<unsigned>(std::max(one, other));
  if (low > 0) raw(SYS_close_range, 0U, low - 1, 0U);
  if (high > low + 1) raw(SYS_close_range, low + 1, high - 1, 0U);
  raw(SYS_close_range, high + 1, ~0U, 0U);
}

/// In the helper, a copy of a process that may have threads: nothing allocates or locks.
ClosedReport measureInHelper(int directory, const TreeBounds& bounds) {
  ClosedReport report;
  raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // new credentials cleared an earlier one
  report.size = measureTree(directory, bounds);
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  report.cpu_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  return report;
}

}  // namespace

long enterOwnersNamespace(int sandbox) {
  const auto uid = static_cast<std::uint32_t>(::geteuid()), gid = static_cast<std::uint32_t>(::getegid());
  if (uid == 0) return 0;
  if (sandbox >= 0) return raw(SYS_setns, sandbox, CLONE_NEWUSER);
  raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);  // or the process may not write its own id maps
  if (const long made = raw(SYS_unshare, CLONE_NEWUSER); made < 0) return made;
  if (const long denied = writeFile("/proc/self/setgroups", "deny", 4); denied < 0) return denied;
  if (const long mapped = writeIdMap("/proc/self/uid_map", uid); mapped < 0) return mapped;
  return writeIdMap("/proc/self/gid_map", gid);
}

long startMeasureHelper(int directory, const TreeBounds& bounds, int report, int sandbox) {
  // No exit signal: an application that embeds us must not see this child in its own handling of SIGCHLD.
  const long helper = raw(SYS_clone, 0, 0, 0, 0, 0);
  if (helper != 0) return helper;
  const std::uint64_t all = ~0ULL;
  raw(SYS_rt_sigprocmask, SIG_BLOCK, &all, nullptr, sizeof(all));  // handlers of the application must not run here
  const bool entered = enterOwnersNamespace(sandbox) >= 0;
  closeAllBut(directory, report);
  TreeBounds own = bounds;
  own.reader = report;
  ClosedReport found;
  found.size.hidden = true;
  if (entered) found = measureInHelper(directory, own);
  raw(SYS_write, report, &found, sizeof(found));
  for (;;) raw(SYS_exit_group, 0);
}

std::optional<ClosedMeasure> ClosedMeasure::start(int directory, const TreeBounds& bounds, int sandbox) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const long helper = startMeasureHelper(directory, bounds, theirs.get(), sandbox);
  if (helper < 0) return std::nullopt;
  return ClosedMeasure(static_cast<pid_t>(helper), std::move(ours));
}

ClosedMeasure::ClosedMeasure(ClosedMeasure&& other) noexcept
    : helper_(std::exchange(other.helper_, -1)), report_(std::move(other.report_)) {}

ClosedMeasure::~ClosedMeasure() {
  if (helper_ <= 0) return;
  ::kill(helper_, SIGKILL);  // our own child, not yet waited for: its number is not reused
  // It may hang in the kernel, on a file system that does not answer: then it is left behind as a zombie.
  pollfd wait{report_.get(), POLLIN, 0};
  while (::poll(&wait, 1, kHelperKillTimeoutMs) < 0 && errno == EINTR) {
  }
  reap(wait.revents != 0);
}

void ClosedMeasure::reap(bool exited) {
  const pid_t helper = std::exchange(helper_, -1);
  if (helper <= 0) return;
  while (raw(SYS_wait4, helper, nullptr, exited ? __WALL : __WALL | WNOHANG, nullptr) == -EINTR) {
  }
}

std::optional<ClosedReport> ClosedMeasure::wait(std::chrono::milliseconds timeout) {
  pollfd ready{report_.get(), POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(timeout.count())) <= 0) return std::nullopt;
  ClosedReport report;
  // One write of less than PIPE_BUF bytes arrives whole.
  if (::read(report_.get(), &report, sizeof(report)) != static_cast<ssize_t>(sizeof(report))) {
    report = {};
    report.size.hidden = true;
  }
  reap(true);
  return report;
}

std::optional<ClosedSizes::Key> ClosedSizes::keyOf(int directory) {
  struct stat status{};
  if (::fstat(directory, &status) != 0) return std::nullopt;
  return Key{status.st_dev, status.st_ino};
}

void ClosedSizes::collect() {
  for (auto& [key, tree] : trees_) {
    if (!tree.pending) continue;
    const auto report = tree.pending->measure.wait(std::chrono::milliseconds(0));
    if (!report) continue;
    tree.not_before = std::chrono::steady_clock::now() + std::chrono::nanoseconds(report->cpu_ns * kPausePerCost);
    // An incomplete one does not replace a complete one: what the file system lost since then counts too.
    if (!report->size.hidden || !tree.known || tree.known->size.hidden) {
      tree.known = Known{report->size, tree.pending->free_bytes, tree.pending->free_inodes};
    }
    tree.pending.reset();
  }
}

std::optional<ClosedSizes::Known> ClosedSizes::last(int directory) {
  collect();
  const auto key = keyOf(directory);
  const auto found = key ? trees_.find(*key) : trees_.end();
  return found == trees_.end() ? std::nullopt : found->second.known;
}

void ClosedSizes::set(int directory, const Known& known) {
  const auto key = keyOf(directory);
  if (!key) return;
  if (trees_.size() >= kMaxTrees && !trees_.contains(*key)) trees_.erase(trees_.begin());
  trees_[*key].known = known;
}

void ClosedSizes::request(int directory, TreeBounds bounds, std::uint64_t free_bytes, std::uint64_t free_inodes) {
  collect();
  const auto key = keyOf(directory);
  const auto now = std::chrono::steady_clock::now();
  if (!key || trees_[*key].pending || now < trees_[*key].not_before) return;
  const auto runs = [](const auto& tree) { return tree.second.pending.has_value(); };
  if (std::ranges::count_if(trees_, runs) >= kMaxHelpers) return;
  bounds.deadline = now + kHelperTimeout;
  if (auto started = start_(directory, bounds)) {
    trees_[*key].pending.emplace(Pending{std::move(*started), free_bytes, free_inodes});
  }
}

std::optional<TreeSize> ClosedSizes::measure(int directory, TreeBounds bounds, std::chrono::milliseconds timeout) {
  bounds.deadline = std::chrono::steady_clock::now() + timeout;
  auto started = start_(directory, bounds);
  const auto report = started ? started->wait(timeout) : std::nullopt;
  return report && !report->size.hidden ? std::optional(report->size) : std::nullopt;
}

}  // namespace caisson::supervise
