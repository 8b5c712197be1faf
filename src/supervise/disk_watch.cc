#include "supervise/disk_watch.h"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>

#include "supervise/tree_size.h"

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kMaxFloor = 1024 * kMiB;
constexpr auto kLongestBlindness = milliseconds(500);

struct Room {
  std::uint64_t free = 0, total = 0, inodes = 0;
};

std::optional<Room> roomOf(int fd) {
  struct statfs status{};
  if (::fstatfs(fd, &status) != 0) return std::nullopt;
  const auto unit = static_cast<std::uint64_t>(status.f_bsize);
  return Room{status.f_bavail * unit, status.f_blocks * unit, status.f_ffree};
}

/// CPU time of this thread: waiting on a busy machine is not a cost.
std::chrono::nanoseconds worked() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

}  // namespace

DiskWatch::DiskWatch(const plan::DiskQuota& quota) : quota_(quota) {
  ::clock_gettime(CLOCK_REALTIME_COARSE, &start_);  // the clock of file timestamps
  for (const std::string& path : quota.trees)
    add(sys::Fd(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW)), start_);
}

void DiskWatch::addUpper(int directory) {
  if (quota_.upper) add(sys::Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 3)), std::nullopt);
}

void DiskWatch::add(sys::Fd fd, const std::optional<timespec>& since) {
  const auto room = fd ? roomOf(fd.get()) : std::nullopt;
  if (!room) return;
  Tree tree{.fd = std::move(fd),
            .since = since,
            .free_at_start = room->free,
            .free = room->free,
            .free_inodes = room->inodes,
            .inodes_at_start = room->inodes};
  // A twentieth of the disk, but a disk that is nearly full already must not fail every run.
  tree.floor = std::min({room->total / 20, kMaxFloor, room->free / 2});
  trees_.push_back(std::move(tree));
}

bool DiskWatch::worthAWalk(Clock::time_point now, bool changed) const {
  if (!quota_.bytes && !quota_.inodes) return false;
  const auto since = now - walked_;
  if (since < walk_cost_ * 10) return false;  // a huge tree must not use a whole processor
  // Only the number of files is limited: while the disk lost less than half as many inodes, the tree cannot have
  // reached it.
  if (!quota_.bytes && counts_inodes_ && inodes_gone_ < *quota_.inodes / 2) return false;
  const std::uint64_t left = quota_.bytes.value_or(~0ULL) - std::min(quota_.bytes.value_or(~0ULL), bytes_);
  const std::uint64_t grown = grown_ - std::min(grown_, grown_at_walk_);
  if (grown >= std::max(left / 4, kMiB)) return true;
  return changed ? since >= milliseconds(100) : since >= kLongestBlindness;
}

TreeSize DiskWatch::measure(const Tree& tree) const {
  TreeSize size =
      measureTree(tree.fd.get(), quota_.bytes.value_or(~0ULL - 1), quota_.inodes.value_or(~0ULL - 1), tree.since);
  if (!size.hidden || tree.since || !measure_closed_) return size;
  const auto whole = measure_closed_(tree.fd.get());
  return whole ? TreeSize{std::max(size.bytes, whole->bytes), std::max(size.inodes, whole->inodes), whole->hidden}
               : size;
}

void DiskWatch::walk(Clock::time_point now, const ProcessTree& processes) {
  const auto before = worked();
  std::uint64_t bytes = 0, inodes = 0;
  bool hidden = false;
  for (const Tree& tree : trees_) {
    const TreeSize size = measure(tree);
    bytes += size.bytes;
    inodes += size.inodes;
    hidden = hidden || size.hidden;
  }
  // Files that are deleted but open, and files in unreadable directories, show only in the file system's free space.
  // Others write there too, so this is checked only if more is missing than the tree explains.
  if (grown_ > bytes + kMiB) bytes += std::min(processes.deletedBytes(), grown_ - bytes);
  if (hidden) bytes = std::max(bytes, grown_);
  bytes_ = bytes;
  inodes_ = inodes;
  grown_at_walk_ = grown_;
  changed_since_walk_ = false;
  walked_ = now;
  walk_cost_ = worked() - before;
}

std::optional<std::string> DiskWatch::look(Clock::time_point now, const ProcessTree& processes) {
  bool changed = false;
  std::uint64_t grown = 0, gone = 0;
  counts_inodes_ = true;
  for (Tree& tree : trees_) {
    const auto room = roomOf(tree.fd.get());
    if (!room) continue;
    changed = changed || room->free != tree.free || room->inodes != tree.free_inodes;
    tree.free = room->free;
    tree.free_inodes = room->inodes;
    counts_inodes_ = counts_inodes_ && room->inodes > 0;  // btrfs, for example, does not count them
    if (room->inodes < tree.inodes_at_start) gone = std::max(gone, tree.inodes_at_start - room->inodes);
    // Several trees on one file system see the same growth.
    if (room->free < tree.free_at_start) grown = std::max(grown, tree.free_at_start - room->free);
    if (room->free < tree.floor && tree.free_at_start > room->free)
      return "the host's disk has only " + mebibytes(room->free) + " left";
  }
  growing_ = grown > grown_;
  grown_ = grown;
  inodes_gone_ = gone;
  changed_since_walk_ = changed_since_walk_ || changed;
  if (!worthAWalk(now, changed_since_walk_)) return std::nullopt;
  walk(now, processes);
  if (quota_.bytes && bytes_ > *quota_.bytes)
    return "more than " + mebibytes(quota_.stated_bytes.value_or(*quota_.bytes)) +
           " were written (filesystem.max_total_size)";
  if (quota_.inodes && inodes_ > *quota_.inodes)
    return "more than " + std::to_string(quota_.stated_inodes.value_or(*quota_.inodes)) +
           " files were made (filesystem.max_inodes)";
  return std::nullopt;
}

}  // namespace caisson::supervise
