#include "supervise/limits/tree_size.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "sys/fd.h"

namespace caisson::supervise {
namespace {

// One open directory per level; ordinary programs do not nest this deep.
constexpr std::size_t kDeepest = 200;

bool reached(const statx_timestamp& time, const timespec& since) {
  return time.tv_sec > since.tv_sec || (time.tv_sec == since.tv_sec && time.tv_nsec >= since.tv_nsec);
}

class Walk {
 public:
  Walk(std::uint64_t most_bytes, std::uint64_t most_inodes, const std::optional<timespec>& since)
      : most_bytes_(most_bytes), most_inodes_(most_inodes), since_(since) {}

  void add(int parent, const char* name, bool top, bool* is_directory) {
    struct statx status{};
    const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == 0 ? AT_EMPTY_PATH : 0);
    if (::statx(parent, name, flags, STATX_TYPE | STATX_NLINK | STATX_BLOCKS | STATX_CTIME | STATX_BTIME, &status) != 0)
      return;
    *is_directory = S_ISDIR(status.stx_mode);
    const bool has_birth = (status.stx_mask & STATX_BTIME) != 0;
    if (!since_ || reached(status.stx_ctime, *since_)) {
      // Every new entry changes an existing directory; its own growth is negligible. A file with several names is met
      // once for each.
      const std::uint64_t names = *is_directory || status.stx_nlink == 0 ? 1 : status.stx_nlink;
      if (!since_ || !*is_directory) size.bytes += status.stx_blocks * 512 / names;
    }
    if (!top && (!since_ || reached(has_birth ? status.stx_btime : status.stx_ctime, *since_))) ++size.inodes;
  }
  void descend(sys::Fd directory, std::size_t depth) {
    DIR* stream = ::fdopendir(directory.get());
    if (stream == nullptr) return;
    directory.release();
    while (const dirent* entry = over() ? nullptr : ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      bool is_directory = false;
      add(::dirfd(stream), entry->d_name, false, &is_directory);
      if (!is_directory) continue;
      sys::Fd below(::openat(::dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!below || depth == kDeepest) {
        size.hidden = true;
      } else {
        descend(std::move(below), depth + 1);
      }
    }
    ::closedir(stream);
  }
  [[nodiscard]] bool over() const { return size.bytes > most_bytes_ || size.inodes > most_inodes_; }

  TreeSize size;

 private:
  std::uint64_t most_bytes_, most_inodes_;
  const std::optional<timespec>& since_;
};

}  // namespace

TreeSize measureTree(int directory, std::uint64_t most_bytes, std::uint64_t most_inodes,
                     const std::optional<timespec>& since) {
  Walk walk(most_bytes, most_inodes, since);
  bool is_directory = false;
  walk.add(directory, "", true, &is_directory);
  if (!is_directory) return walk.size;
  sys::Fd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (copy) walk.descend(std::move(copy), 0);
  return walk.size;
}

}  // namespace caisson::supervise
