#include "sys/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "sys/fd.h"
#include "sys/random_hex.h"
#include "sys/root_dir_resolve.h"

namespace caisson::sys {
namespace {

// Deeper directories are renamed into the top of the tree and removed from there. So depth and PATH_MAX do not matter,
// few descriptors are open, and `..` is never used: after a racing payload moved the directory, `..` would lead out of
// the tree.
constexpr std::size_t kHoistDepth = 24;
// Where that rename fails (EXDEV on merged overlay directories), the walk keeps one descriptor per level.
constexpr std::size_t kMaxDepth = 200;
constexpr unsigned kMaxPasses = 100;  // over one directory that keeps changing
constexpr std::size_t kBufferSize = 16384;
constexpr long kSysFchmodat2 = 452;  // Linux 6.6, the same number on every architecture

constexpr std::string_view kMountReason = "something is mounted there; it was left alone, unmount it first";
constexpr std::string_view kRacedReason = "it keeps changing while it is removed; end what writes there first";

struct Frame {
  Fd directory;
  std::string name;  // in the frame below
  std::unique_ptr<char[]> buffer;
  std::size_t next = 0, filled = 0;
  unsigned passes = 0;
  // For the current pass:
  std::size_t seen = 0;     // entries
  std::size_t changed = 0;  // removed by us, or gone or replaced meanwhile: needs another pass
  std::uint64_t hoists_before = 0;
};

class TreeRemover {
 public:
  TreeRemover(int parent, std::string_view shown, Stage stage) : parent_(parent), shown_(shown), stage_(stage) {}

  Result<void> empty() {
    Fd directory(::openat(parent_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return fail(sysError(stage_, "remove tree", shown_, errno));
    keep_first_ = true;
    push(std::move(directory), "");
    drain();
    return outcome();
  }

  Result<void> remove(const std::string& name) {
    for (unsigned attempt = 0; attempt < kMaxPasses && !error_; ++attempt) {
      (void)removeEntry(parent_, name, DT_UNKNOWN);
      drain();
      if (!inspect(parent_, name.c_str())) return outcome();
    }
    record("", EBUSY, kRacedReason);
    return outcome();
  }

 private:
  Result<void> outcome() const {
    if (error_) return fail(*error_);
    return {};
  }

  /// Keeps the first error: for `name` in the innermost directory, or for that directory itself.
  void record(std::string_view name, int sys_errno, std::string_view reason = {}) {
    if (error_) return;
    std::string path = shown_;
    for (std::size_t i = 1; i < frames_.size(); ++i) path.append("/").append(frames_[i].name);
    if (!frames_.empty() && !name.empty()) path.append("/").append(name);
    if (reason.empty() && (sys_errno == EXDEV || sys_errno == EBUSY)) reason = kMountReason;
    error_ = sysError(stage_, "remove tree", path, sys_errno);
    error_->reason = reason;
  }

  void push(Fd directory, std::string name) {
    frames_.push_back({.directory = std::move(directory), .name = std::move(name), .hoists_before = hoists_});
  }

  void drain() {
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const dirent64* entry = nextEntry(frame);
      if (entry == nullptr) {
        finishPass(frame);
        continue;
      }
      ++frame.seen;
      if (removeEntry(frame.directory.get(), entry->d_name, entry->d_type)) ++frame.changed;
    }
  }

  /// The next entry other than `.` and `..`, or null at the end of this pass. Uses getdents64: a DIR per level needs
  /// more memory and hides the rewinding.
  const dirent64* nextEntry(Frame& frame) {
    for (;;) {
      if (frame.next == frame.filled) {
        if (!frame.buffer) frame.buffer = std::make_unique_for_overwrite<char[]>(kBufferSize);
        const long count = ::syscall(SYS_getdents64, frame.directory.get(), frame.buffer.get(), kBufferSize);
        if (count < 0 && errno != ENOENT) record("", errno);
        if (count <= 0) return nullptr;
        frame.next = 0;
        frame.filled = static_cast<std::size_t>(count);
      }
      const auto* entry = reinterpret_cast<const dirent64*>(frame.buffer.get() + frame.next);
      frame.next += entry->d_reclen;
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) return entry;
    }
  }

  /// Unlinks a non-directory, or descends into a directory. True if `directory` itself changed, by us or by others:
  /// then another pass over it makes sense.
  bool removeEntry(int directory, const std::string& name, unsigned char type) {
    if (type != DT_DIR && type != DT_UNKNOWN) {
      if (const int error = unlink(directory, name); error != EISDIR) return settle(name, error);
    }
    // Most directories of a run are empty. The kernel refuses one with content, a mount point and a link.
    if (type == DT_DIR && ::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return true;
    auto info = inspect(directory, name.c_str());
    if (!info) return settle(name, info.error());
    if (S_ISDIR(info->stx_mode)) return descend(directory, name, *info);
    return settle(name, unlink(directory, name));
  }

  /// Returns 0 or an errno. unlinkat never follows a final link.
  static int unlink(int directory, const std::string& name) {
    return ::unlinkat(directory, name.c_str(), 0) == 0 ? 0 : errno;
  }

  /// Judges the result of a call. True, for a changed directory, if the entry is gone or was replaced (the next pass
  /// handles the replacement); records any other error.
  bool settle(const std::string& name, int error) {
    if (error == 0 || error == ENOENT || error == ENOTDIR || error == EISDIR || error == ELOOP) return true;
    record(name, error);
    return false;
  }

  /// Makes the directory `name` the innermost frame, or moves it to the top. Returns as removeEntry().
  bool descend(int directory, const std::string& name, const struct statx& before) {
    auto around = inspect(directory, "");
    if (!around) return settle(name, around.error());
    if (!sameMount(before, *around)) return settle(name, EXDEV);
    Fd handle(::openat(directory, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!handle) return settle(name, errno);
    auto opened = inspect(handle.get(), "");
    if (!opened) return settle(name, opened.error());
    if (!sameObject(*opened, before) || !sameMount(*opened, before)) return true;  // swapped between our two calls
    if ((opened->stx_mode & 0700) != 0700) unlockDirectory(handle.get(), opened->stx_mode);
    if (frames_.size() >= kHoistDepth && hoist(directory, name)) return true;
    if (frames_.size() >= kMaxDepth) {
      record(name, ENAMETOOLONG, "too deep, and its directories can't be moved up");
      return false;
    }
    // "." of the verified descriptor: the name is not resolved again.
    Fd inside(::openat(handle.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (inside) {
      push(std::move(inside), name);
      return false;
    }
    const int open_errno = errno;
    // Another user's unreadable directory can still be removed if it is empty.
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return true;
    return settle(name, open_errno);
  }

  /// Moves a deep directory to the top of the tree, where a later pass finds it. False if it cannot be moved.
  bool hoist(int directory, const std::string& name) {
    const std::optional<std::string> fresh = unpredictableName();
    if (!fresh) return false;
    if (::renameat2(directory, name.c_str(), frames_.front().directory.get(), fresh->c_str(), RENAME_NOREPLACE) != 0) {
      return false;
    }
    ++hoists_;
    return true;
  }

  void finishPass(Frame& frame) {
    const bool first = frames_.size() == 1;
    if (first && keep_first_) {
      if (frame.seen == 0) return pop(0);
      return again(frame);
    }
    const int below = first ? parent_ : frames_[frames_.size() - 2].directory.get();
    // AT_REMOVEDIR removes only an empty directory, even if the name was swapped.
    if (::unlinkat(below, frame.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return pop(1);
    const int error = errno;
    const bool full = error == ENOTEMPTY || error == EEXIST;
    if (error == ENOTDIR || (full && frame.seen == 0)) return pop(1);  // the name now belongs to another object
    if (full) return again(frame);
    record("", error);
    pop(0);
  }

  /// Begins another pass, or gives up on the directory if the last one made no progress. Hoisting into it is progress
  /// and is not counted: a tree of depth n needs n / kHoistDepth passes over its top.
  void again(Frame& frame) {
    if (frame.changed == 0) return pop(0);
    if (hoists_ == frame.hoists_before && ++frame.passes > kMaxPasses) {
      record("", EAGAIN, kRacedReason);
      return pop(0);
    }
    frame.hoists_before = hoists_;
    frame.seen = frame.changed = frame.next = frame.filled = 0;
    if (::lseek(frame.directory.get(), 0, SEEK_SET) < 0) {
      record("", errno);
      pop(0);
    }
  }

  void pop(std::size_t changed) {
    frames_.pop_back();
    if (!frames_.empty()) frames_.back().changed += changed;
  }

  int parent_;
  std::string shown_;
  Stage stage_;
  bool keep_first_ = false;
  std::deque<Frame> frames_;  // a deque keeps references valid while frames are added
  std::uint64_t hoists_ = 0;
  std::optional<Error> error_;
};

}  // namespace

void unlockDirectory(int handle, unsigned mode) {
  const mode_t wanted = (mode & 07777) | 0700;
  if (::syscall(kSysFchmodat2, handle, "", wanted, AT_EMPTY_PATH) == 0) return;
  std::array<char, 40> link{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", handle);
  (void)::chmod(link.data(), wanted);  // if this fails too, the following open fails and reports the errno
}

std::optional<std::string> unpredictableName() {
  const auto digits = randomHex(16);
  if (!digits) return std::nullopt;
  return ".caisson-" + *digits;
}

Result<void> removeTreeAt(int parent, const std::string& name, std::string_view shown, Stage stage) {
  TreeRemover remover(parent, shown, stage);
  return name.empty() ? remover.empty() : remover.remove(name);
}

}  // namespace caisson::sys
