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

class SharedFiles {
 public:
  SharedFiles(const sys::RootDir& root, std::vector<std::string>& found) : root_(root), found_(found) {}

  void add(const std::string& path) {
    const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return;
    const sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return;
    look(path, status);
    while (!pending_.empty()) {
      const std::string directory = std::move(pending_.back());
      pending_.pop_back();
      list(directory);
    }
  }

 private:
  void look(const std::string& path, const struct stat& status) {
    if (S_ISDIR(status.st_mode)) pending_.push_back(path);
    if (S_ISREG(status.st_mode) && status.st_nlink > 1) found_.push_back(path);
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
      if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) look(join(path, name), status);
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
  for (const auto& one : scan.protected_paths) {
    if (one.target.empty()) files.add(one.path);
  }
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
  SharedFiles(*root, names).add("");
  for (const std::string& name : names) found.push_back(path.path + "/" + name);
}

}  // namespace caisson::host
