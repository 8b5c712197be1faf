#include "host/shared_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxProtectedEntries = 100'000;  // below protected directories, in all

sys::Fd openObject(const sys::RootDir& root, const std::string& path) {
  const long opened = isolation::openBeneath(root.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  return sys::Fd(opened < 0 ? -1 : static_cast<int>(opened));
}

bool describe(int object, struct statx& status) {
  return ::statx(object, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &status) == 0;
}

plan::ObjectStamp stampIn(const struct statx& status) {
  const bool born = (status.stx_mask & STATX_BTIME) != 0;
  return {.inode = status.stx_ino,
          .born_ns = born ? status.stx_btime.tv_sec * 1'000'000'000LL + status.stx_btime.tv_nsec : 0};
}

class SharedFiles {
 public:
  SharedFiles(const sys::RootDir& root, std::vector<std::string>& found) : root_(root), found_(found) {}

  plan::ObjectStamp add(const std::string& path) {
    const sys::Fd object = openObject(root_, path);
    struct statx status{};
    if (!object || !describe(object.get(), status)) return {};
    look(path, status.stx_mode, status.stx_nlink);
    while (!pending_.empty()) {
      const std::string directory = std::move(pending_.back());
      pending_.pop_back();
      list(directory);
    }
    return stampIn(status);
  }

 private:
  void look(const std::string& path, mode_t mode, std::uint64_t links) {
    if (S_ISDIR(mode)) pending_.push_back(path);
    if (S_ISREG(mode) && links > 1) found_.push_back(path);
  }

  void list(const std::string& path) {
    const long opened =
        isolation::openBeneath(root_.descriptor(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
    DIR* stream = opened < 0 ? nullptr : ::fdopendir(static_cast<int>(opened));
    if (stream == nullptr) {
      if (opened >= 0) ::close(static_cast<int>(opened));
      return;  // the scan of the workspace has reported it
    }
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > kMaxProtectedEntries) {
        found_.push_back(path + "/");
        break;
      }
      struct stat status{};
      if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      look(join(path, name), status.st_mode, status.st_nlink);
    }
    ::closedir(stream);
  }

  const sys::RootDir& root_;
  std::vector<std::string>& found_;
  std::vector<std::string> pending_;
  std::size_t entries_ = 0;
};

}  // namespace

void findSharedFiles(const sys::RootDir& root, plan::WorkspaceScan& scan) {
  SharedFiles files(root, scan.shared_files);
  for (auto& one : scan.protected_paths) {
    if (one.target.empty()) one.stamp = files.add(one.path);
  }
}

plan::ObjectStamp stampOf(const sys::RootDir& root, const std::string& path) {
  const sys::Fd object = openObject(root, path);
  struct statx status{};
  return object && describe(object.get(), status) ? stampIn(status) : plan::ObjectStamp();
}

void findSharedFilesIn(const plan::HostPath& path, std::vector<std::string>& found) {
  if (!path.opened) return;
  if (!path.directory) {
    struct stat status{};
    const bool known = ::fstat(path.opened->get(), &status) == 0;
    if (known && S_ISREG(status.st_mode) && status.st_nlink > 1) found.push_back(path.path);
    return;
  }
  const auto root = sys::RootDir::share(path.opened->get(), {.known_as = path.path});
  if (!root) return;
  std::vector<std::string> names;
  (void)SharedFiles(*root, names).add("");
  for (const std::string& name : names) found.push_back(path.path + "/" + name);
}

}  // namespace caisson::host
