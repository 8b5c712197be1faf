#include "sys/merge_layers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

namespace caisson::sys {
namespace {

constexpr const char* kOpaque = "user.overlay.opaque";
constexpr std::size_t kMaxAttributes = 64 * 1024;

Result<Fd> openDirectory(const RootDir& root, const std::string& path) {
  return root.openFile(path, {.flags = O_RDONLY, .types = {FileType::directory}});
}

bool isOpaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, kOpaque, &value, 1) == 1 && value == 'y';
}

/// A directory of the new layer that is not filled yet.
struct Work {
  std::string path;                  // in every layer, "" is the top
  std::vector<std::size_t> sources;  // layers that contribute, uppermost first
};

class Merge {
 public:
  Merge(std::vector<RootDir> layers, RootDir target) : layers_(std::move(layers)), target_(std::move(target)) {}

  Result<void> run() {
    Work top;
    for (std::size_t i = 0; i < layers_.size(); ++i) top.sources.push_back(i);
    done_.emplace_back("", top.sources.empty() ? 0 : top.sources.front());
    pending_.push_back(std::move(top));
    while (!pending_.empty()) {
      const Work work = std::move(pending_.back());
      pending_.pop_back();
      if (auto filled = fill(work); !filled) return filled;
    }
    // Innermost first, after all entries exist: creating entries changes a directory's times, and needs write
    // permission.
    for (auto one = done_.rbegin(); one != done_.rend(); ++one) {
      if (auto finished = finish(one->first, one->second); !finished) return finished;
    }
    return {};
  }

 private:
  std::unexpected<Error> refuse(const char* call, const std::string& path, int error) const {
    return fail(sysError(Stage::state, call, path.empty() ? target_.knownAs() : path, error));
  }

  /// Fills one directory from all its sources, and queues its subdirectories.
  Result<void> fill(const Work& work) {
    auto target = openDirectory(target_, work.path);
    if (!target) return fail(target.error());
    std::map<std::string, Work> directories;  // created once all contributing layers are known
    std::map<std::string, bool> settled;      // by an upper layer; true: a directory that merges with lower ones
    for (const std::size_t layer : work.sources) {
      auto source = openDirectory(layers_[layer], work.path);
      if (!source) return fail(source.error());
      auto entries = layers_[layer].list(work.path);
      if (!entries) return fail(entries.error());
      for (const DirectoryEntry& entry : *entries) {
        const auto known = settled.find(entry.name);
        if (known != settled.end() && !known->second) continue;
        if (auto taken = take(work.path, entry.name, layer, source->get(), target->get(), directories, settled);
            !taken) {
          return taken;
        }
      }
    }
    for (auto& [name, directory] : directories) {
      done_.emplace_back(directory.path, directory.sources.front());
      pending_.push_back(std::move(directory));
    }
    return {};
  }

  /// Adds one entry of a layer. `settled` has the entries of upper layers; a directory that merges gets this layer as a
  /// further source.
  Result<void> take(const std::string& parent, const std::string& name, std::size_t layer, int source, int target,
                    std::map<std::string, Work>& directories, std::map<std::string, bool>& settled) {
    const std::string path = parent.empty() ? name : parent + "/" + name;
    struct stat status;
    if (::fstatat(source, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return refuse("stat", path, errno);
    const bool seen = settled.contains(name);
    if (!S_ISDIR(status.st_mode)) {
      settled[name] = false;
      // An upper directory hides this entry. Mark it opaque in the new layer, so that it still hides the layers below.
      if (seen) return markOpaque(target, path, name);
      return link(path, name, source, target, status);
    }
    auto directory = openDirectory(layers_[layer], path);
    if (!directory) return fail(directory.error());
    if (!seen && ::mkdirat(target, name.c_str(), 0700) != 0) return refuse("mkdir", path, errno);
    Work& work = directories[name];
    work.path = path;
    work.sources.push_back(layer);
    const bool last = isOpaque(directory->get());
    settled[name] = !last;
    return last ? markOpaque(target, path, name) : Result<void>{};
  }

  Result<void> link(const std::string& path, const std::string& name, int source, int target,
                    const struct stat& status) const {
    if (::linkat(source, name.c_str(), target, name.c_str(), 0) == 0) return {};
    const bool deletion = S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0);
    if (errno != EMLINK || !deletion) return refuse("link", path, errno);
    if (::mknodat(target, name.c_str(), S_IFCHR, makedev(0, 0)) != 0) return refuse("mknod", path, errno);
    return {};
  }

  Result<void> markOpaque(int target, const std::string& path, const std::string& name) const {
    const Fd directory(::openat(target, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) return refuse("open", path, errno);
    if (::fsetxattr(directory.get(), kOpaque, "y", 1, 0) != 0) return refuse("setxattr", path, errno);
    return {};
  }

  /// Copies owner, `user.` attributes except the opaque mark, mode and times from the directory's uppermost layer.
  Result<void> finish(const std::string& path, std::size_t layer) const {
    if (layers_.empty()) return {};
    auto target = openDirectory(target_, path);
    if (!target) return fail(target.error());
    auto source = openDirectory(layers_[layer], path);
    if (!source) return fail(source.error());
    struct stat status;
    if (::fstat(source->get(), &status) != 0) return refuse("stat", path, errno);
    if (auto copied = copyAttributes(source->get(), target->get(), path); !copied) return copied;
    if (::fchown(target->get(), status.st_uid, status.st_gid) != 0) return refuse("chown", path, errno);
    if (::fchmod(target->get(), status.st_mode & 07777) != 0) return refuse("chmod", path, errno);
    const timespec times[] = {status.st_atim, status.st_mtim};
    if (::futimens(target->get(), times) != 0) return refuse("utimens", path, errno);
    return {};
  }

  Result<void> copyAttributes(int source, int target, const std::string& path) const {
    std::string names(kMaxAttributes, '\0');
    const ssize_t length = ::flistxattr(source, names.data(), names.size());
    if (length < 0) return errno == ENOTSUP ? Result<void>{} : refuse("listxattr", path, errno);
    for (const char* name = names.data(); name < names.data() + length; name += std::string_view(name).size() + 1) {
      if (!std::string_view(name).starts_with("user.") || std::string_view(name) == kOpaque) continue;
      std::string value(kMaxAttributes, '\0');
      const ssize_t size = ::fgetxattr(source, name, value.data(), value.size());
      if (size < 0 || ::fsetxattr(target, name, value.data(), static_cast<std::size_t>(size), 0) != 0) {
        return refuse("setxattr", path, errno);
      }
    }
    return {};
  }

  std::vector<RootDir> layers_;
  RootDir target_;
  std::vector<Work> pending_;
  std::vector<std::pair<std::string, std::size_t>> done_;  // created directories, outer first, with their layer
};

}  // namespace

Result<void> mergeLayers(const RootDir& store, std::span<const std::string> layers, const std::string& into) {
  std::vector<RootDir> opened;
  for (const std::string& name : layers) {
    auto layer = store.enter(name);
    if (!layer && layer.error().sys_errno == ENOENT) continue;
    if (!layer) return fail(layer.error());
    opened.push_back(std::move(*layer));
  }
  if (::mkdirat(store.descriptor(), into.c_str(), 0700) != 0) {
    return fail(sysError(Stage::state, "mkdir", into, errno));
  }
  auto target = store.enter(into);
  if (!target) return fail(target.error());
  return Merge(std::move(opened), std::move(*target)).run();
}

}  // namespace caisson::sys
