#include "sys/root_dir_resolve.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

#include "sys/kernel_abi.h"

namespace caisson::sys {
namespace {

constexpr unsigned kLinkBudget = 40;      // the kernel's own limit
constexpr unsigned kRaceRetries = 64;     // openat2 returns EAGAIN if any rename races a `..`
constexpr unsigned kStepBudget = 100000;  // 40 links of PATH_MAX each, walked again at every `..`, could take hours

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.push_back(part);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return parts;
}

/// The components of an absolute path after those of the directory `known_as`; nothing if it does not lie below.
std::optional<std::vector<std::string_view>> partsBelow(std::string_view path, std::string_view known_as) {
  if (!known_as.starts_with('/')) return std::nullopt;
  std::vector<std::string_view> parts = components(path);
  const std::vector<std::string_view> prefix = components(known_as);
  if (parts.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), parts.begin())) return std::nullopt;
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(prefix.size()));
  return parts;
}

std::expected<Fd, int> duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return std::unexpected(errno);
  return copy;
}

/// The fallback: opens one component at a time without following, and expands links itself. The kernel never resolves
/// `..`, since a directory moved meanwhile has its parent outside the root: instead, the walk restarts at the root with
/// one name less.
class Walk {
 public:
  Walk(int root, const struct statx& root_info, const ResolveRules& rules)
      : root_(root), root_info_(root_info), rules_(rules) {}

  std::expected<Fd, int> to(const std::string& path) {
    if (int error = restart(); error != 0) return std::unexpected(error);
    push(path);
    while (!pending_.empty()) {
      const std::string part = std::move(pending_.back());
      pending_.pop_back();
      if (int error = part == ".." ? up() : step(part); error != 0) return std::unexpected(error);
    }
    return std::move(here_);
  }

 private:
  void push(std::string_view path) {
    const std::vector<std::string_view> parts = components(path);
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) pending_.emplace_back(*part);
  }

  int restart() {
    auto copy = duplicate(root_);
    if (!copy) return copy.error();
    here_ = std::move(*copy);
    return 0;
  }

  int up() {
    if (passed_.empty() && rules_.refuse_links_out) return kLeadsOut;
    if (!passed_.empty()) passed_.pop_back();  // at the root, `..` is the root
    if (int error = restart(); error != 0) return error;
    for (const std::string& part : passed_) {
      // A link here was a directory before: a payload races us, and O_DIRECTORY gives ENOTDIR.
      if (int error = enter(part, O_DIRECTORY); error != 0) return error;
    }
    return 0;
  }

  int enter(const std::string& part, int flags) {
    if (++steps_ > kStepBudget) return ELOOP;
    Fd next(::openat(here_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC | flags));
    if (!next) return errno;
    here_ = std::move(next);
    return 0;
  }

  int step(const std::string& part) {
    auto from = duplicate(here_.get());
    if (!from) return from.error();
    if (int error = enter(part, 0); error != 0) return error;
    auto info = inspect(here_.get(), "");
    if (!info) return info.error();
    if (rules_.stay_on_mount && !sameMount(*info, root_info_)) return EXDEV;
    if (S_ISDIR(info->stx_mode)) {
      passed_.push_back(part);
      return 0;
    }
    return S_ISLNK(info->stx_mode) ? expand(std::move(*from)) : ENOTDIR;
  }

  int expand(Fd from) {
    if (++links_ > kLinkBudget) return ELOOP;
    // The text of a magic link (/proc/PID/root, /proc/PID/fd/N) is not a path. Refuses all links of procfs:
    // distinguishing the few plain ones is not worth it.
    struct statfs file_system{};
    if (::fstatfs(here_.get(), &file_system) != 0) return errno;
    if (file_system.f_type == PROC_SUPER_MAGIC) return ELOOP;
    std::array<char, PATH_MAX> text{};
    const ssize_t length = ::readlinkat(here_.get(), "", text.data(), text.size());
    if (length < 0) return errno;
    if (length == 0) return ENOENT;
    if (static_cast<std::size_t>(length) == text.size()) return ENAMETOOLONG;
    const std::string_view target(text.data(), static_cast<std::size_t>(length));
    if (!target.starts_with('/')) {
      push(target);
      here_ = std::move(from);
      return 0;
    }
    if (rules_.refuse_links_out) {
      const auto below = partsBelow(target, rules_.known_as);
      if (!below) return kLeadsOut;
      for (auto part = below->rbegin(); part != below->rend(); ++part) pending_.emplace_back(*part);
    } else {
      push(target);
    }
    passed_.clear();
    return restart();
  }

  int root_;
  struct statx root_info_;
  ResolveRules rules_;
  Fd here_;
  std::vector<std::string> passed_;   // link-free names from the root to here_
  std::vector<std::string> pending_;  // components left to walk, in reverse order
  unsigned links_ = 0;
  unsigned steps_ = 0;
};

std::expected<Fd, int> walkByHand(int root, const std::string& path, const ResolveRules& rules) {
  auto info = inspect(root, "");
  if (!info) return std::unexpected(info.error());
  return Walk(root, *info, rules).to(path);
}

}  // namespace

std::expected<RequestedPath, BadRequest> splitPath(std::string_view requested, std::string_view known_as) {
  if (requested.find('\0') != std::string_view::npos) return std::unexpected(BadRequest::nul_byte);
  std::vector<std::string_view> parts = components(requested);
  if (requested.starts_with('/')) {
    auto below = partsBelow(requested, known_as);
    if (!below) return std::unexpected(BadRequest::climbs);
    parts = std::move(*below);
  }
  std::size_t depth = 0;
  for (const std::string_view part : parts) {
    if (part != "..") {
      ++depth;
    } else if (depth-- == 0) {
      return std::unexpected(BadRequest::climbs);
    }
  }
  RequestedPath path;
  if (!parts.empty() && parts.back() != "..") {
    path.name = parts.back();
    parts.pop_back();
  }
  for (const std::string_view part : parts) {
    if (!path.directory.empty()) path.directory += '/';
    path.directory += part;
  }
  return path;
}

std::expected<Fd, int> resolveDirectory(int root, const std::string& path, ResolveRules rules) {
  if (path.empty()) return duplicate(root);
  if (rules.by_hand) return walkByHand(root, path, rules);
  OpenHow how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = (rules.refuse_links_out ? kResolveBeneath : kResolveInRoot) | kResolveNoMagiclinks |
                (rules.stay_on_mount ? kResolveNoXdev : 0);
  for (unsigned attempt = 0; attempt < kRaceRetries; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno == ENOSYS || errno == EPERM) break;
    if (errno == EXDEV && rules.refuse_links_out) break;  // the walk finds out whether the link leads out
    if (errno != EAGAIN && errno != EINTR) return std::unexpected(errno);
  }
  return walkByHand(root, path, rules);
}

std::expected<struct statx, int> inspect(int directory, const char* name) {
  struct statx info{};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(directory, name, flags, STATX_BASIC_STATS | STATX_MNT_ID, &info) != 0) return std::unexpected(errno);
  return info;
}

bool sameObject(const struct statx& a, const struct statx& b) {
  return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor &&
         (a.stx_mode & S_IFMT) == (b.stx_mode & S_IFMT);
}

bool sameMount(const struct statx& a, const struct statx& b) {
  if ((a.stx_mask & b.stx_mask & STATX_MNT_ID) != 0) return a.stx_mnt_id == b.stx_mnt_id;
  return a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;  // before 5.8
}

}  // namespace caisson::sys
