#include "supervise/limits/disk_watch.h"

#include <fcntl.h>
#include <sys/vfs.h>

#include <algorithm>

#include "supervise/limits/paused_tree.h"
#include "supervise/limits/tree_size.h"
#include "sys/thread_time.h"

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMaxFloor = 1024 * policy::kMiB;
constexpr std::uint64_t kMaxInodeFloor = 100'000;
constexpr auto kWalkTime = milliseconds(250);  // of one tree: the event loop waits meanwhile
constexpr auto kLongWalk = milliseconds(20);   // a payload could write much in that time
constexpr auto kConfirmTime = milliseconds(250);
constexpr std::uint64_t kFewInodes = 200;
constexpr auto kMaxBlindness = milliseconds(500);
constexpr auto kShortestPause = milliseconds(5);  // between two polls while the disk fills
constexpr auto kShortPause = milliseconds(20);
constexpr auto kLongPause = milliseconds(250);
// No program writes or creates more in a millisecond.
constexpr std::uint64_t kBytesPerMs = 16 * policy::kMiB;
constexpr std::uint64_t kFilesPerMs = 1000;

struct Room {
  std::uint64_t free = 0, total = 0, inodes = 0, total_inodes = 0;
};

std::uint64_t without(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

std::optional<Room> roomOf(int fd) {
  struct statfs status{};
  if (::fstatfs(fd, &status) != 0) return std::nullopt;
  const auto unit = static_cast<std::uint64_t>(status.f_bsize);
  return Room{status.f_bavail * unit, status.f_blocks * unit, status.f_ffree, status.f_files};
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes / policy::kMiB) + " MiB"; }

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
            .inodes_at_start = room->inodes,
            .free_inodes = room->inodes,
            .free_at_walk = room->free,
            .free_inodes_at_walk = room->inodes};
  // A twentieth of the disk, but a disk that is nearly full already must not fail every run.
  tree.floor = std::min({room->total / 20, kMaxFloor, room->free / 2});
  tree.inode_floor = std::min({room->total_inodes / 20, kMaxInodeFloor, room->inodes / 2});
  trees_.push_back(std::move(tree));
}

std::uint64_t DiskWatch::bytesLeft() const {
  std::uint64_t left = without(quota_.bytes.value_or(~0ULL), bytes_);
  for (const Fill& one : directories()) left = std::min(left, without(one.quota->bytes, one.bytes));
  return left;
}

milliseconds DiskWatch::timeLeft() const {
  std::uint64_t bytes = without(bytesLeft(), grownSinceWalk());
  std::uint64_t files = without(quota_.inodes.value_or(~0ULL), inodes_);
  for (const Tree& tree : trees_) {
    bytes = std::min(bytes, without(tree.free, tree.floor));
    if (tree.inode_floor > 0) files = std::min(files, without(tree.free_inodes, tree.inode_floor));
  }
  for (const Fill& one : directories()) files = std::min(files, without(one.quota->inodes, one.inodes));
  return milliseconds(std::min<std::uint64_t>({bytes / kBytesPerMs, files / kFilesPerMs, 1000}));
}

milliseconds DiskWatch::pause() const {
  return growing_ ? std::clamp(timeLeft() / 4, kShortestPause, kShortPause * 5)
                  : std::clamp(timeLeft() / 4, kShortPause, kLongPause);
}

bool DiskWatch::limitsInodesOnly() const { return !quota_.bytes && quota_.directories.empty(); }

bool DiskWatch::couldExceed() const { return grownSinceWalk() > bytesLeft(); }

bool DiskWatch::worthAWalk(Clock::time_point now, bool changed) const {
  if (!quota_.bytes && !quota_.inodes && quota_.directories.empty()) return false;
  const auto since = now - pace_->walked;
  // A huge tree must not use a whole processor, but a payload must not use the time until the next walk either: if a
  // limit may be exceeded, walk at once, and after that as soon as two thirds of the time remain for other work.
  if (since < pace_->cost * 10) return couldExceed() && (!forced_ || since >= pace_->cost * 3);
  // Only the number of files is limited: while the disk lost less than half as many inodes, the tree cannot have
  // reached it.
  if (limitsInodesOnly() && counts_inodes_ && inodes_gone_ < *quota_.inodes / 2) return false;
  if (grownSinceWalk() >= std::max(bytesLeft() / 4, policy::kMiB)) return true;
  // Free space is not enough: another program may free as much as the payload writes.
  const auto soonest = std::clamp(timeLeft(), milliseconds(100), kMaxBlindness);
  return since >= (changed ? soonest : kMaxBlindness);
}

TreeBounds DiskWatch::boundsOf(const Tree& tree) const {
  TreeBounds bounds;
  bounds.since = tree.since;
  if (quota_.bytes && counts(tree)) bounds.bytes = *quota_.bytes;
  if (quota_.inodes) bounds.inodes = *quota_.inodes;
  if (tree.directory) {
    bounds.bytes = std::min(bounds.bytes, quota_.directories[*tree.directory].bytes);
    bounds.inodes = quota_.directories[*tree.directory].inodes;
  }
  return bounds;
}

void DiskWatch::measure(Tree& tree) {
  TreeBounds bounds = boundsOf(tree);
  bounds.deadline = Clock::now() + kWalkTime;
  const TreeSize seen = measureTree(tree.fd.get(), bounds);
  tree.bytes = seen.bytes;
  tree.inodes = seen.inodes;
  tree.estimated_bytes = tree.estimated_inodes = 0;
  tree.hidden = seen.hidden;
  tree.walked = true;
  tree.free_at_walk = tree.free;
  tree.free_inodes_at_walk = tree.free_inodes;
  if (!seen.hidden) {
    if (seen.bytes <= bounds.bytes && seen.inodes <= bounds.inodes)  // else the walk stopped there
      closed_->set(tree.fd.get(), {seen, tree.free, tree.free_inodes});
    return;
  }
  const auto last = closed_->last(tree.fd.get());
  const bool complete = last && !last->size.hidden;
  const std::uint64_t bytes = complete ? last->size.bytes : 0, inodes = complete ? last->size.inodes : 0;
  if (last) {
    tree.bytes = std::max(tree.bytes, last->size.bytes);
    tree.inodes = std::max(tree.inodes, last->size.inodes);
  }
  // Since then the file system lost this much; who wrote it is not known.
  const std::uint64_t lost = without(complete ? last->free_bytes : tree.free_at_start, tree.free);
  const std::uint64_t lost_inodes = without(complete ? last->free_inodes : tree.inodes_at_start, tree.free_inodes);
  tree.estimated_bytes = without(bytes + lost, tree.bytes);
  tree.estimated_inodes = without(inodes + lost_inodes, tree.inodes);
  tree.bytes += tree.estimated_bytes;
  tree.inodes += tree.estimated_inodes;
  closed_->request(tree.fd.get(), boundsOf(tree), tree.free, tree.free_inodes);
}

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

void DiskWatch::sumUp() {
  bytes_ = inodes_ = 0;
  std::uint64_t estimated_bytes = 0, estimated_inodes = 0;
  for (const Tree& tree : trees_) {
    // Several trees on one file system see the same loss.
    if (counts(tree)) {
      bytes_ += tree.bytes - tree.estimated_bytes;
      estimated_bytes = std::max(estimated_bytes, tree.estimated_bytes);
    }
    if (!tree.directory) {
      inodes_ += tree.inodes - tree.estimated_inodes;
      estimated_inodes = std::max(estimated_inodes, tree.estimated_inodes);
    }
  }
  bytes_ += estimated_bytes;
  inodes_ += estimated_inodes;
}

void DiskWatch::confirmEstimates() {
  for (Tree& tree : trees_) {
    if (tree.estimated_bytes == 0 && tree.estimated_inodes == 0) continue;
    const auto whole = closed_->measure(tree.fd.get(), boundsOf(tree), kConfirmTime);
    if (!whole) continue;
    tree.bytes = whole->bytes;
    tree.inodes = whole->inodes;
    tree.estimated_bytes = tree.estimated_inodes = 0;
    closed_->set(tree.fd.get(), {*whole, tree.free, tree.free_inodes});
  }
  sumUp();
}

void DiskWatch::walk(Clock::time_point now, const ProcessTree& processes) {
  const auto before = sys::threadTime();
  forced_ = now - pace_->walked < pace_->cost * 10;
  std::optional<PausedTree> paused;
  if (couldExceed() && pace_->cost > kLongWalk) paused.emplace(processes);
  for (Tree& tree : trees_) measure(tree);
  sumUp();
  auto cost = sys::threadTime() - before;
  if (std::ranges::any_of(trees_, &Tree::hidden) && findExceeded()) {
    const auto begin = Clock::now();
    if (!paused) paused.emplace(processes);
    confirmEstimates();
    cost += Clock::now() - begin;
  }
  std::uint64_t all = 0;
  for (const Tree& tree : trees_) all += tree.bytes;
  if (grown_ > all + policy::kMiB) addDeleted(processes.deletedFiles(), grown_ - all);
  grown_at_walk_ = grown_;
  changed_since_walk_ = false;
  *pace_ = {now, cost};
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
    if (tree.directory) measure(tree);
  }
  return directories();
}

std::vector<DiskWatch::Fill> DiskWatch::measureCaches(milliseconds timeout) {
  for (Tree& tree : trees_) {
    if (!tree.directory || !quota_.directories[*tree.directory].cache) continue;
    const auto room = roomOf(tree.fd.get());
    if (!room) continue;
    tree.free = room->free;
    tree.free_inodes = room->inodes;
    const bool changed =
        tree.free + policy::kMiB < tree.free_at_walk || tree.free_inodes + kFewInodes < tree.free_inodes_at_walk;
    if (!changed && !tree.hidden) continue;
    measure(tree);
    if (!tree.hidden) continue;
    const plan::DirectoryQuota& quota = quota_.directories[*tree.directory];
    const auto whole = closed_->measure(tree.fd.get(), boundsOf(tree), timeout);
    tree.bytes = whole ? whole->bytes : quota.bytes;
    tree.inodes = whole ? whole->inodes : quota.inodes;
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
  last_walk_ = {};
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
    if (room->inodes < tree.inode_floor && tree.inodes_at_start > room->inodes)
      return Exceeded{"the host's disk has only " + std::to_string(room->inodes) + " inodes left", ""};
  }
  growing_ = grown > grown_;
  grown_ = grown;
  inodes_gone_ = gone;
  changed_since_walk_ = changed_since_walk_ || changed;
  if (!worthAWalk(now, changed_since_walk_)) return std::nullopt;
  const auto begin = Clock::now();
  walk(now, processes);
  last_walk_ = Clock::now() - begin;
  return findExceeded();
}

}  // namespace caisson::supervise
