#include "host/named_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "host/written_trees.h"
#include "sys/descriptor_path.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::host {
namespace {

using sys::Fd;

constexpr long kProcMagic = 0x9fa0;
constexpr int kMaxFollowed = 40;     // as the kernel
constexpr int kMaxAncestors = 4096;  // longer than any path

std::int64_t changedAt(const struct stat& status) {
  return status.st_ctim.tv_sec * 1'000'000'000LL + status.st_ctim.tv_nsec;
}

bool isInTree(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || (path.starts_with(directory) && path[directory.size()] == '/');
}

std::optional<std::string> targetText(int link) {
  char text[4096];
  const ssize_t length = ::readlinkat(link, "", text, sizeof(text));
  if (length <= 0 || static_cast<std::size_t>(length) == sizeof(text)) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(length));
}

/// Resolves a path name by name, as the kernel does, and judges each link.
class Walk {
 public:
  /// The object at `path`, from the directory `at` if it is relative. Invalid: see error().
  Fd resolve(Fd at, const std::string& path) {
    if (path.starts_with('/')) at = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (std::size_t begin = 0; at && begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const std::string name = path.substr(begin, end - begin);
      begin = end + 1;
      if (!name.empty() && name != ".") at = step(std::move(at), name);
    }
    return at;
  }
  NamedOpen result;  ///< the error

 private:
  Fd refuse(int error) {
    if (result.error == 0) result.error = error;
    return Fd();
  }

  Fd step(Fd directory, const std::string& name) {
    Fd next(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!next || ::fstat(next.get(), &status) != 0) return refuse(errno);
    if (!S_ISLNK(status.st_mode)) return next;
    struct statfs system{};
    if (::fstatfs(next.get(), &system) != 0) return refuse(errno);
    if (static_cast<long>(system.f_type) == kProcMagic) {  // its text may be no path; no payload makes links there
      Fd target(::openat(directory.get(), name.c_str(), O_PATH | O_CLOEXEC));
      return target ? std::move(target) : refuse(errno);
    }
    if (++links_ > kMaxFollowed) return refuse(ELOOP);
    const auto text = targetText(next.get());
    if (!text) return refuse(errno == 0 ? ENAMETOOLONG : errno);
    const Fd origin(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
    Fd target = resolve(std::move(directory), *text);
    if (!target || !mayFollow(origin.get(), name, changedAt(status), target.get())) return Fd();
    return target;
  }

  /// Whether the link `name` in `directory`, which leads to `target`, is older than every sandbox that could have made
  /// it or moved it to its place, or stays in the directories that those could write to.
  bool mayFollow(int directory, const std::string& name, std::int64_t changed, int target) {
    Fd above(::fcntl(directory, F_DUPFD_CLOEXEC, 3));
    struct stat before{}, status{};
    if (!above || ::fstat(above.get(), &status) != 0) return refuse(errno).valid();
    for (int i = 0; i < kMaxAncestors; ++i) {
      const auto record = trees_.find(above.get());
      if (!record) return distrust(record.error());
      if (*record && changed >= (*record)->since && !leadsInto(above.get(), target))
        return planted(directory, name, target);
      before = status;
      above = Fd(::openat(above.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!above || ::fstat(above.get(), &status) != 0) return refuse(errno).valid();
      if (before.st_dev == status.st_dev && before.st_ino == status.st_ino) return true;  // "/"
      // A move changes the directory and the one it arrives in. A new file in the directory changes only that.
      changed = std::max(changed, std::min(changedAt(before), changedAt(status)));
    }
    return refuse(ELOOP).valid();
  }

  static bool leadsInto(int tree, int target) {
    const auto top = sys::canonicalPath(tree), path = sys::canonicalPath(target);
    return top && path && isInTree(*path, *top);
  }

  bool distrust(const Error& error) {
    result.error = ELOOP;
    result.why_not = "a link is on the way, and which ones a sandbox may have made is not known: " + error.object +
                     (error.reason.empty() ? "" : ": " + error.reason);
    result.remedy = error.hint.empty() ? "name the directory that it leads to" : error.hint;
    return false;
  }

  bool planted(int directory, const std::string& name, int target) {
    const auto where = sys::canonicalPath(directory), path = sys::canonicalPath(target);
    result.error = ELOOP;
    result.why_not = where.value_or("") + "/" + name + " is a symbolic link to " + path.value_or("somewhere else") +
                     " that a sandbox may have made: it could write there before";
    result.remedy = "if you mean " + path.value_or("the target") + ", name that path; otherwise remove the link";
    return false;
  }

  const WrittenTrees trees_;
  int links_ = 0;
};

}  // namespace

NamedOpen openNamed(const std::string& path) {
  NamedOpen found;
  sys::OpenHow how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = sys::kResolveNoSymlinks;
  const long opened = sys::raw(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how));
  if (opened >= 0) {
    found.opened = Fd(static_cast<int>(opened));
    return found;
  }
  if (opened != -ELOOP && opened != -ENOSYS && opened != -EPERM) {
    found.error = static_cast<int>(-opened);
    return found;
  }
  if (WrittenTrees().empty()) {
    found.opened = Fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!found.opened) found.error = errno;
    return found;
  }
  Fd at(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  Walk walk;
  if (at || path.starts_with('/')) found.opened = walk.resolve(std::move(at), path);
  if (found.opened) return found;
  if (walk.result.error == 0) walk.result.error = ENOENT;
  return std::move(walk.result);
}

}  // namespace caisson::host
