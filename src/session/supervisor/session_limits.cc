#include "session/supervisor/session_limits.h"

#include <sys/vfs.h>

#include <algorithm>

#include "session/layers/hidden_size.h"
#include "supervise/limits/tree_size.h"
#include "supervise/processes/process_tree.h"
#include "sys/thread_time.h"

namespace caisson::session {
namespace {

constexpr auto kFirstLook = std::chrono::milliseconds(10);  ///< from the first command to the first poll
constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr auto kHiddenWork = std::chrono::milliseconds(100);  ///< processor time of one measurement of hidden files
constexpr auto kHiddenTime = std::chrono::milliseconds(500);  ///< the longest one, if the machine or the disk is busy
constexpr int kHiddenPause = 4;  ///< times the work of the last measurement: at most a fifth of a processor

constexpr auto kMaxFrozenPause = std::chrono::seconds(10);
constexpr auto kFullTime = std::chrono::seconds(1);  ///< to measure one tree before a command starts
constexpr auto kEmptyingTime = std::chrono::milliseconds(250);
constexpr auto kCacheTimeout = std::chrono::milliseconds(100);  // the event loop waits meanwhile

using Clock = std::chrono::steady_clock;

std::uint64_t less(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

/// Raises the limits of directories that were over them before `start` to their size then, so that a command may still
/// delete files there. What was written since then counts.
void allowEmptying(plan::DiskQuota& quota, const std::vector<sys::Fd>& directories, const timespec& start) {
  std::uint64_t before = 0;
  for (std::size_t index = 0; index < std::min(quota.directories.size(), directories.size()); ++index) {
    plan::DirectoryQuota& own = quota.directories[index];
    const int directory = directories[index].get();
    const auto now = supervise::measureTree(directory, {.deadline = Clock::now() + kEmptyingTime});
    const auto written = supervise::measureTree(directory, {.since = start, .deadline = Clock::now() + kEmptyingTime});
    if (written.hidden) continue;  // part of it would count as older
    own.stated_bytes = own.bytes;
    own.stated_inodes = own.inodes;
    own.bytes = std::max(own.bytes, less(now.bytes, written.bytes));
    own.inodes = std::max(own.inodes, less(now.inodes, written.inodes));
    before += less(now.bytes, written.bytes);
  }
  if (quota.bytes && quota.total_has_directories) quota.bytes = std::max(*quota.bytes, before);
}

/// The quota of the upper layer: what frozen layers leave of the whole. A session that was over its quota before
/// `start` gets the size it had then, so that it may still delete files; what was written since then counts.
plan::DiskQuota quotaOfUpper(const plan::DiskQuota& whole, const LayerSize& frozen, int upper, const timespec& start) {
  plan::DiskQuota quota = whole;
  quota.trees.clear();
  quota.upper = true;
  quota.stated_bytes = whole.bytes;
  quota.stated_inodes = whole.inodes;
  if (whole.bytes) quota.bytes = less(*whole.bytes, frozen.bytes);
  if (whole.inodes) quota.inodes = less(*whole.inodes, frozen.inodes);
  const auto now = supervise::measureTree(upper, {.deadline = Clock::now() + kEmptyingTime});
  if (now.bytes <= quota.bytes.value_or(~0ULL) && now.inodes <= quota.inodes.value_or(~0ULL)) return quota;
  const auto written = supervise::measureTree(upper, {.since = start, .deadline = Clock::now() + kEmptyingTime});
  if (written.hidden) return quota;
  if (quota.bytes) quota.bytes = std::max(*quota.bytes, less(now.bytes, written.bytes));
  if (quota.inodes) quota.inodes = std::max(*quota.inodes, less(now.inodes, written.inodes));
  return quota;
}

}  // namespace

SessionLimits::SessionLimits(const SessionPaths& paths, const Metadata& metadata, const LiveSandbox& sandbox)
    : paths_(paths),
      metadata_(metadata),
      sandbox_(sandbox),
      plan_(sandbox.plan()),
      whole_(plan_.disk),
      first_(Clock::now() + kFirstLook) {
  plan_.cpu_seconds.reset();   // per command
  plan_.wall_seconds.reset();  // per command
  // Not the coarse clock of file times, which is up to a tick behind: a file written just before would count as written
  // since.
  ::clock_gettime(CLOCK_REALTIME, &start_);
  kills_before_ = memoryKills();
}

SessionLimits::~SessionLimits() {
  if (watch_) watch_->noteCaches(kCacheTimeout);
}

bool SessionLimits::needed(const plan::Plan& plan) { return plan.disk || plan.memory_bytes > 0 || plan.max_tasks > 0; }

std::uint64_t SessionLimits::memoryKills() const {
  return sandbox_.cgroup().valid() ? sandbox_.cgroup().oomKills().value_or(0) : 0;
}

std::uint64_t SessionLimits::deniedForks() const {
  const auto counted = sandbox_.cgroup().valid() ? sandbox_.cgroup().deniedForks() : std::nullopt;
  if (counted) return *counted;
  return watch_ && watch_->met() == Limit::processes ? 1 : 0;
}

bool SessionLimits::wasFullOfProcesses() const {
  if (plan_.max_tasks == 0 || (sandbox_.cgroup().valid() && sandbox_.cgroup().deniedForks())) return false;
  const supervise::TaskCounts counts = supervise::ProcessTree(sandbox_.init()).countTasks();
  return counts.processes + counts.threads + 1 >= plan_.max_tasks;
}

std::uint64_t SessionLimits::freeSpace() const {
  struct statfs status{};
  if (::fstatfs(paths_.stores().descriptor(), &status) != 0) return 0;
  return status.f_bavail * static_cast<std::uint64_t>(status.f_bsize);
}

bool SessionLimits::isOverDiskLimit(Clock::time_point now) {
  if (!whole_) return false;
  auto own = supervise::measureTree(sandbox_.upper(), {.deadline = now + kFullTime});
  const auto& directories = sandbox_.diskDirectories();
  for (std::size_t index = 0; index < std::min(whole_->directories.size(), directories.size()); ++index) {
    const plan::DirectoryQuota& quota = whole_->directories[index];
    if (quota.cache) continue;  // trimmed when the sandbox ends; commands of other sandboxes may have filled it
    const auto size = supervise::measureTree(directories[index].get(), {.deadline = now + kFullTime});
    if (size.bytes > quota.bytes || size.inodes > quota.inodes) return true;
    if (whole_->total_has_directories) own.bytes += size.bytes;
  }
  const LayerSize frozen = sizeOfFrozen(paths_, metadata_, [this](int layer) { return sizeOfClosed(layer); });
  const auto over = [&] {
    return own.bytes + less(frozen.bytes, hidden_.bytes) > whole_->bytes.value_or(~0ULL) ||
           own.inodes + less(frozen.inodes, hidden_.inodes) > whole_->inodes.value_or(~0ULL);
  };
  return over() && (!measureHidden(now) || over());
}

void SessionLimits::noteFreeSpace() {
  if (plan_.disk) free_before_ = freeSpace();
}

std::optional<SessionLimits::Clock::time_point> SessionLimits::next() const {
  if (!needed(plan_)) return std::nullopt;
  if (held_) return next_measure_;
  return watch_ ? watch_->next() : first_;
}

void SessionLimits::begin(Clock::time_point now) {
  const int upper = sandbox_.upper();
  frozen_unknown_ = false;
  next_frozen_ = now + frozen_pause_;
  frozen_pause_ = std::min<Clock::duration>(frozen_pause_ * 4, kMaxFrozenPause);
  if (whole_ && upper >= 0) {
    LayerSize frozen = sizeOfFrozen(paths_, metadata_, [this](int layer) { return sizeOfClosed(layer); });
    frozen.bytes = less(frozen.bytes, hidden_.bytes);
    frozen.inodes = less(frozen.inodes, hidden_.inodes);
    plan_.disk = quotaOfUpper(*whole_, frozen, upper, start_);
  }
  if (plan_.disk && allow_emptying_) allowEmptying(*plan_.disk, sandbox_.diskDirectories(), start_);
  watch_.emplace(plan_, sandbox_.cgroup(), [](const std::string&) {});
  watch_->ignoreMemoryKills(kills_before_);
  watch_->addSized(sandbox_.sizedMask(), sandbox_.sizedDirectories());
  if (upper >= 0) watch_->addUpper(upper);
  watch_->addDirectories(sandbox_.diskDirectories());
  if (!sandbox_.diskDirectories().empty()) watch_->useDiskPace(sandbox_.diskPace());
  // A command may have filled a directory and closed it to us before the first poll: the free space noted since then
  // does not show that.
  watch_->useClosedSizes(sandbox_.closedSizes());
  watch_->begin(sandbox_.init(), now);
}

std::optional<LayerSize> SessionLimits::sizeOfClosed(int layer) {
  const auto known = sandbox_.closedSizes().last(layer);
  const bool complete = known && !known->size.hidden;
  if (!complete) {
    sandbox_.closedSizes().request(layer, {}, 0, 0);
    frozen_unknown_ = true;
  }
  return known ? std::optional(LayerSize{known->size.bytes, known->size.inodes, complete}) : std::nullopt;
}

std::optional<Limit> SessionLimits::look(Clock::time_point now) {
  if (!needed(plan_)) return std::nullopt;
  if (!watch_) begin(now);
  if (frozen_unknown_ && now >= next_frozen_) begin(now);
  const auto reached = watch_->look(now);
  if (reached != Limit::disk) {
    held_.reset();
    return reached;
  }
  // The quota seems used up. Measure what does not count, which takes time, and poll again. Nothing is judged by an old
  // measurement: until the next is due, the payload waits.
  if (now < next_measure_) {
    if (!held_) held_.emplace(supervise::ProcessTree(sandbox_.init()));
    return std::nullopt;
  }
  const bool first = !allow_emptying_ && !sandbox_.diskDirectories().empty();
  allow_emptying_ = true;
  if (!measureHidden(now) && !first) return reached;
  begin(now);
  sandbox_.diskPace() = {};  // measure now: with the old pace the next poll would wait, while short commands write more
  const auto still = watch_->look(now);
  held_.reset();
  return still;
}

bool SessionLimits::measureHidden(Clock::time_point now) {
  if (metadata_.frozen.empty()) return false;
  auto store = paths_.stores().enter(metadata_.family);
  if (!store) return false;
  std::vector<std::string> layers{metadata_.upper};
  layers.insert(layers.end(), metadata_.frozen.begin(), metadata_.frozen.end());
  std::set<std::string> counted;
  for (const Checkpoint& one : metadata_.checkpoints) counted.insert(one.frozen.begin(), one.frozen.end());
  const auto before = sys::threadTime();
  const LayerSize found = sizeOfHidden(*store, layers, counted, kHiddenWork, now + kHiddenTime);
  next_measure_ = Clock::now() + kHiddenPause * (sys::threadTime() - before);
  const bool more = found.bytes > hidden_.bytes || found.inodes > hidden_.inodes;
  hidden_ = found;
  return more;
}

bool SessionLimits::muchHidden() const {
  return whole_ && ((whole_->bytes && hidden_.bytes > *whole_->bytes / 4) ||
                    (whole_->inodes && hidden_.inodes > *whole_->inodes / 4));
}

std::optional<Limit> SessionLimits::lookAtEnd() {
  if (memoryKills() > kills_before_) return Limit::memory;
  if (!plan_.disk || freeSpace() + kMiB > free_before_) return std::nullopt;
  return look(Clock::now());
}

void SessionLimits::setIpcBytes(std::uint64_t bytes) {
  if (watch_) watch_->setIpcBytes(bytes);
}

std::string SessionLimits::reason() {
  if (!watch_) return "";
  RunResult scratch;
  watch_->finish(true, scratch);
  std::string text;
  for (const std::string& notice : scratch.notices) text += (text.empty() ? "" : "; ") + notice;
  return text;
}

}  // namespace caisson::session
