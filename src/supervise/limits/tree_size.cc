#include "supervise/limits/tree_size.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using TreeClock = std::chrono::steady_clock;

constexpr std::size_t kOpenLevels = 32;
constexpr std::size_t kMaxLevels = 100'000;
constexpr std::size_t kEntriesSize = 4096;
constexpr unsigned kEntriesPerCheck = 128;

bool reached(const statx_timestamp& time, const timespec& since) {
  return time.tv_sec > since.tv_sec || (time.tv_sec == since.tv_sec && time.tv_nsec >= since.tv_nsec);
}

/// What getdents64(2) returns.
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

/// Visits a tree depth first. Only the lowest kOpenLevels directories are open. The others are opened again through
/// "..", and must be the same as before: a payload could have moved the directory below to another place.
class TreeWalk {
 public:
  explicit TreeWalk(const TreeBounds& bounds) : bounds_(bounds) {
    void* memory =
        ::mmap(nullptr, sizeof(Levels), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) levels_ = static_cast<Levels*>(memory);
  }
  ~TreeWalk() {
    if (levels_ == nullptr) return;
    for (std::size_t level = 0; level <= depth_; ++level) {
      if (const Open& open = slot(level); isOpen(open, level)) ::close(open.fd);
    }
    ::munmap(levels_, sizeof(Levels));
  }
  TreeWalk(const TreeWalk&) = delete;
  TreeWalk& operator=(const TreeWalk&) = delete;

  TreeSize measure(int top) {
    bool is_directory = false;
    add(top, "", true, &is_directory);
    if (!is_directory || bounds_.top_only) return size_;
    if (levels_ == nullptr) {
      size_.hidden = true;
      return size_;
    }
    const int fd = ::openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
      size_.hidden = size_.hidden || errno != ENOENT;
      return size_;
    }
    put(fd, 0);
    while (!stopped() && step()) {
    }
    return size_;
  }

 private:
  struct Open {
    int fd;
    bool used;
    std::size_t level;
    std::size_t filled, at;  ///< in `entries`
    alignas(Entry) char entries[kEntriesSize];
  };
  /// What is known of a directory that was closed because others below it are open.
  struct Closed {
    dev_t device;
    ino_t inode;
    std::int64_t next;  ///< where its entries go on
  };
  struct Levels {
    Open open[kOpenLevels];
    Closed closed[kMaxLevels];
  };

  [[nodiscard]] Open& slot(std::size_t level) const { return levels_->open[level % kOpenLevels]; }
  [[nodiscard]] static bool isOpen(const Open& open, std::size_t level) { return open.used && open.level == level; }

  void put(int fd, std::size_t level) {
    Open& open = slot(level);
    open.fd = fd;
    open.used = true;
    open.level = level;
    open.filled = open.at = 0;
    depth_ = level;
  }

  void add(int parent, const char* name, bool top, bool* is_directory) {
    struct statx status{};
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == 0 ? AT_EMPTY_PATH : 0);
    if (::statx(parent, name, flags,
                STATX_TYPE | STATX_NLINK | STATX_BLOCKS | STATX_CTIME | STATX_BTIME | STATX_UID | STATX_GID,
                &status) != 0) {
      if (errno != ENOENT) size_.hidden = true;  // EACCES: a directory that can be listed but not searched
      return;
    }
    *is_directory = S_ISDIR(status.stx_mode);
    if (bounds_.owner) noteOwner(parent, name, status);
    const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
    const auto& since = bounds_.since;
    if (!since || reached(status.stx_ctime, *since)) {
      // Every new entry changes an existing directory; its own growth is negligible. A file with several names is met
      // once for each.
      const std::uint64_t names = *is_directory || status.stx_nlink == 0 ? 1 : status.stx_nlink;
      if (!since || !*is_directory) size_.bytes += status.stx_blocks * 512 / names;
    }
    if (!top && (!since || reached(has_birth ? status.stx_btime : status.stx_ctime, *since))) ++size_.inodes;
  }

  void noteOwner(int parent, const char* name, const struct statx& status) {
    const bool foreign = status.stx_uid != *bounds_.owner;
    size_.foreign = size_.foreign || foreign;
    if (!bounds_.give_to_owner || (!foreign && status.stx_gid == *bounds_.owner)) return;
    const int flags = *name == 0 ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
    const bool given = ::fchownat(parent, name, *bounds_.owner, *bounds_.owner, flags) == 0 || errno == ENOENT;
    // A group that is not one of the sandbox's stays: the owner can use its file anyway.
    if (!given && foreign) size_.hidden = true;
  }

  /// Handles one entry. False: the walk is over.
  bool step() {
    Open& here = slot(depth_);
    if (here.at >= here.filled && !fill(here)) return goUp();
    // The buffer is aligned for Entry, and so is every record that the kernel writes.
    const auto* entry = reinterpret_cast<const Entry*>(here.entries + here.at);
    here.at += entry->length;
    next_of_current_ = entry->next;
    const char* name = entry->name;
    if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) return true;
    bool is_directory = false;
    add(here.fd, name, false, &is_directory);
    return !is_directory || enter(here, name);
  }

  bool fill(Open& here) {
    const long got = sys::raw(SYS_getdents64, here.fd, here.entries, kEntriesSize);
    here.at = 0;
    here.filled = got > 0 ? static_cast<std::size_t>(got) : 0;
    if (got < 0 && got != -ENOENT) size_.hidden = true;
    return got > 0;
  }

  bool enter(const Open& here, const char* name) {
    if (depth_ + 1 >= kMaxLevels) {
      size_.hidden = true;
      return true;
    }
    const int below = ::openat(here.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0) {
      const bool replaced = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
      size_.hidden = size_.hidden || !replaced;
      return true;
    }
    levels_->closed[depth_].next = next_of_current_;
    if (depth_ + 1 >= kOpenLevels && !closeLevel(depth_ + 1 - kOpenLevels)) {
      ::close(below);
      size_.hidden = true;
      return true;
    }
    put(below, depth_ + 1);
    return true;
  }

  bool closeLevel(std::size_t level) {
    Open& open = slot(level);
    if (!isOpen(open, level)) return true;
    struct stat status{};
    if (::fstat(open.fd, &status) != 0) return false;
    levels_->closed[level].device = status.st_dev;
    levels_->closed[level].inode = status.st_ino;
    ::close(open.fd);
    open.used = false;
    return true;
  }

  bool goUp() {
    Open& here = slot(depth_);
    if (depth_ == 0) return false;
    const std::size_t above = depth_ - 1;
    const int fd = isOpen(slot(above), above) ? -1 : reopen(here.fd, levels_->closed[above]);
    if (!isOpen(slot(above), above) && fd < 0) {
      size_.hidden = true;
      return false;
    }
    ::close(here.fd);
    here.used = false;
    if (fd >= 0) put(fd, above);
    depth_ = above;
    return true;
  }

  static int reopen(int below, const Closed& known) {
    const int fd = ::openat(below, "..", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status{};
    if (fd >= 0 && ::fstat(fd, &status) == 0 && status.st_dev == known.device && status.st_ino == known.inode &&
        ::lseek(fd, known.next, SEEK_SET) >= 0) {
      return fd;
    }
    if (fd >= 0) ::close(fd);
    return -1;
  }

  bool stopped() {
    if (size_.bytes > bounds_.bytes || size_.inodes > bounds_.inodes) return true;
    if (++steps_ % kEntriesPerCheck != 0) return false;
    pollfd reader{bounds_.reader, 0, 0};
    const bool alone = bounds_.reader >= 0 && ::poll(&reader, 1, 0) > 0;
    if (!alone && (!bounds_.deadline || TreeClock::now() < *bounds_.deadline)) return false;
    size_.hidden = true;
    return true;
  }

  const TreeBounds& bounds_;
  Levels* levels_ = nullptr;
  std::size_t depth_ = 0;
  unsigned steps_ = 0;
  std::int64_t next_of_current_ = 0;
  TreeSize size_;
};

}  // namespace

TreeSize measureTree(int directory, const TreeBounds& bounds) { return TreeWalk(bounds).measure(directory); }

}  // namespace caisson::supervise
