#include "supervise/limits/disk_watch.h"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>

#include "supervise/limits/tree_size.h"

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kMaxFloor = 1024 * kMiB;
constexpr auto kLongestBlindness = milliseconds(500);
constexpr auto kShortestPause = milliseconds(5);  // between two polls while the disk fills
constexpr auto kShortPause = milliseconds(20);
constexpr auto kLongPause = milliseconds(250);
// No program writes or creates more in a millisecond.
constexpr std::uint64_t kBytesPerMs = 16 * kMiB;
constexpr std::uint64_t kFilesPerMs = 1000;

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

void DiskWatch::addDirectories(const std::vector<sys::Fd>& descriptors) {
  for (std::size_t index = 0; index < std::min(descriptors.size(), quota_.directories.size()); ++index) {
    add(sys::Fd(::fcntl(descriptors[index].get(), F_DUPFD_CLOEXEC, 3)), std::nullopt, index);
  }
}

void DiskWatch::add(sys::Fd fd, const std::optional<timespec>& since, std::optional<std::size_t> directory) {
  const auto room = fd ? roomOf(fd.get()) : std::nullopt;
  if (!room) return;
  Tree tree{.fd = std::move(fd),
            .since = since,
            .directory = directory,
            .free_at_start = room->free,
            .free = room->free,
            .free_inodes = room->inodes,
            .inodes_at_start = room->inodes};
  // A twentieth of the disk, but a disk that is nearly full already must not fail every run.
  tree.floor = std::min({room->total / 20, kMaxFloor, room->free / 2});
  trees_.push_back(std::move(tree));
}

/// What may be written until the first limit is reached.
std::uint64_t DiskWatch::bytesLeft() const {
  const auto rest = [](std::uint64_t most, std::uint64_t used) { return most - std::min(most, used); };
  std::uint64_t left = rest(quota_.bytes.value_or(~0ULL), bytes_);
  for (const Fill& one : directories()) left = std::min(left, rest(one.quota->bytes, one.bytes));
  return left;
}

/// No limit can be reached earlier.
milliseconds DiskWatch::timeLeft() const {
  std::uint64_t bytes = bytesLeft();
  for (const Tree& tree : trees_) bytes = std::min(bytes, tree.free - std::min(tree.free, tree.floor));
  std::uint64_t files = quota_.inodes.value_or(~0ULL);
  files -= std::min(files, inodes_);
  for (const Fill& one : directories())
    files = std::min(files, one.quota->inodes - std::min(one.quota->inodes, one.inodes));
  return milliseconds(std::min<std::uint64_t>({bytes / kBytesPerMs, files / kFilesPerMs, 1000}));
}

milliseconds DiskWatch::pause() const {
  return growing_ ? std::clamp(timeLeft() / 4, kShortestPause, kShortPause * 5)
                  : std::clamp(timeLeft() / 4, kShortPause, kLongPause);
}

bool DiskWatch::limitsInodesOnly() const { return !quota_.bytes && quota_.directories.empty(); }

bool DiskWatch::worthAWalk(Clock::time_point now, bool changed) const {
  if (!quota_.bytes && !quota_.inodes && quota_.directories.empty()) return false;
  const auto since = now - pace_->walked;
  if (since < pace_->cost * 10) return false;  // a huge tree must not use a whole processor
  // Only the number of files is limited: while the disk lost less than half as many inodes, the tree cannot have
  // reached it.
  if (limitsInodesOnly() && counts_inodes_ && inodes_gone_ < *quota_.inodes / 2) return false;
  const std::uint64_t left = bytesLeft();
  const std::uint64_t grown = grown_ - std::min(grown_, grown_at_walk_);
  if (grown >= std::max(left / 4, kMiB)) return true;
  // Free space is not enough: another program may free as much as the payload writes.
  const auto soonest = std::clamp(timeLeft(), milliseconds(100), kLongestBlindness);
  return since >= (changed ? soonest : kLongestBlindness);
}

TreeSize DiskWatch::measure(const Tree& tree) const {
  std::uint64_t most_bytes = quota_.bytes.value_or(~0ULL - 1), most_inodes = quota_.inodes.value_or(~0ULL - 1);
  if (tree.directory) {
    most_bytes = std::min(most_bytes, quota_.directories[*tree.directory].bytes);
    most_inodes = quota_.directories[*tree.directory].inodes;
  }
  TreeSize size = measureTree(tree.fd.get(), most_bytes, most_inodes, tree.since);
  if (!size.hidden || tree.since || !measure_closed_) return size;
  const auto whole = measure_closed_(tree.fd.get());
  return whole ? TreeSize{std::max(size.bytes, whole->bytes), std::max(size.inodes, whole->inodes), whole->hidden}
               : size;
}

/// Adds files that have no name any more, at most `missing` bytes: what the disk lost and the trees do not explain.
/// Others write there too, and a payload may hold files open that it did not write.
void DiskWatch::addDeleted(const std::vector<DeletedFile>& files, std::uint64_t missing) {
  std::uint64_t sum = 0;
  for (const DeletedFile& file : files) {
    sum += file.bytes;
    for (Tree& tree : trees_) {
      if (tree.directory && file.path.starts_with(quota_.directories[*tree.directory].target + "/")) {
        tree.bytes += file.bytes;
        sum -= counts(tree) ? 0 : file.bytes;
        break;
      }
    }
  }
  bytes_ += std::min(sum, missing);
}

void DiskWatch::walk(Clock::time_point now, const ProcessTree& processes) {
  const auto before = worked();
  bytes_ = inodes_ = 0;
  std::uint64_t all = 0;
  bool hidden = false;
  for (Tree& tree : trees_) {
    const TreeSize size = measure(tree);
    // Files in directories that are closed to us show only in the file system's free space.
    tree.bytes = size.hidden && tree.directory ? std::max(size.bytes, grown_) : size.bytes;
    tree.inodes = size.inodes;
    all += size.bytes;
    hidden = hidden || (size.hidden && counts(tree));
    if (counts(tree)) bytes_ += size.bytes;
    if (!tree.directory) inodes_ += size.inodes;
  }
  if (grown_ > all + kMiB) addDeleted(processes.deletedFiles(), grown_ - all);
  if (hidden) bytes_ = std::max(bytes_, grown_);
  grown_at_walk_ = grown_;
  changed_since_walk_ = false;
  *pace_ = {now, worked() - before};
}

std::vector<DiskWatch::Fill> DiskWatch::directories() const {
  std::vector<Fill> fills;
  for (const Tree& tree : trees_) {
    if (tree.directory) fills.push_back({&quota_.directories[*tree.directory], tree.bytes, tree.inodes});
  }
  return fills;
}

std::vector<DiskWatch::Fill> DiskWatch::measureDirectories() {
  for (Tree& tree : trees_) {
    if (tree.directory) tree.bytes = measure(tree).bytes;
  }
  return directories();
}

std::optional<DiskWatch::Exceeded> DiskWatch::findExceeded() const {
  for (const Fill& one : directories()) {
    const std::string& target = one.quota->target;
    if (one.bytes > one.quota->bytes)
      return Exceeded{"more than " + mebibytes(one.quota->stated_bytes.value_or(one.quota->bytes)) +
                          " were written to " + target + " (its size in filesystem.tmpfs)",
                      target};
    if (one.inodes > one.quota->inodes)
      return Exceeded{"more than " + std::to_string(one.quota->stated_inodes.value_or(one.quota->inodes)) +
                          " files were made in " + target + " (its inodes in filesystem.tmpfs)",
                      target};
  }
  if (quota_.bytes && bytes_ > *quota_.bytes)
    return Exceeded{"more than " + mebibytes(quota_.stated_bytes.value_or(*quota_.bytes)) +
                        " were written (filesystem.max_total_size)",
                    ""};
  if (quota_.inodes && inodes_ > *quota_.inodes)
    return Exceeded{"more than " + std::to_string(quota_.stated_inodes.value_or(*quota_.inodes)) +
                        " files were made (filesystem.max_inodes)",
                    ""};
  return std::nullopt;
}

std::optional<DiskWatch::Exceeded> DiskWatch::look(Clock::time_point now, const ProcessTree& processes) {
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
      return Exceeded{"the host's disk has only " + mebibytes(room->free) + " left", ""};
  }
  growing_ = grown > grown_;
  grown_ = grown;
  inodes_gone_ = gone;
  changed_since_walk_ = changed_since_walk_ || changed;
  if (!worthAWalk(now, changed_since_walk_)) return std::nullopt;
  walk(now, processes);
  return findExceeded();
}

}  // namespace caisson::supervise
