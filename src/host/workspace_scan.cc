#include "host/workspace_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "base/path_parts.h"
#include "host/denied_matches.h"
#include "host/git_programs.h"
#include "host/link_protection.h"
#include "host/owner_access.h"
#include "host/secret_search.h"
#include "isolation/child.h"
#include "plan/secrets.h"
#include "plan/workspace.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxNamed = 5;  ///< directories named as not scanned
constexpr std::size_t kReadCost = 8;  ///< entries that reading a file counts as
constexpr std::size_t kDirectoryCost = 4;
constexpr std::size_t kProgressEvery = 1 << 10;
/// A directory that changed this recently may change again without a new time stamp.
constexpr std::int64_t kFreshNs = 2'000'000'000;

/// Directories that are scanned last: large, and rarely the place of one's own secrets.
constexpr std::string_view kBulk[] = {"node_modules", ".venv",         "venv",   "target",     "vendor",
                                      "__pycache__",  "site-packages", ".cache", ".gradle",    ".m2",
                                      "dist",         "build",         ".tox",   ".terraform", "bower_components"};
constexpr std::string_view kGit = ".git";
/// The parts of a git directory that hold other git directories.
constexpr std::string_view kRepositoryParts[] = {"modules", "worktrees"};
/// Its directories whose files git executes or reads as configuration.
constexpr std::string_view kRepositoryPrograms[] = {"hooks", "info"};

/// A directory in a git directory's `objects` that git makes for objects: searched last, since it has many files.
bool holdsObjects(std::string_view name) {
  return name == "pack" || (name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

template <class Range>
bool contains(const Range& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// Whether this is a file system of the kernel's, such as /proc.
bool isKernelFilesystem(int directory) {
  struct statfs info{};
  if (::fstatfs(directory, &info) != 0) return true;
  constexpr unsigned long kKernel[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                       DEBUGFS_MAGIC,      TRACEFS_MAGIC,  SECURITYFS_MAGIC,   BPF_FS_MAGIC,
                                       DEVPTS_SUPER_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC,     BINFMTFS_MAGIC,
                                       SELINUX_MAGIC,      SMACK_MAGIC};
  return std::ranges::find(kKernel, static_cast<unsigned long>(info.f_type)) != std::end(kKernel);
}

/// Covers directories above instead of so many, at one depth.
void joinCovered(std::vector<plan::WorkspaceScan::Covered>& covered) {
  const auto cut = [](const std::string& path, std::size_t depth) {
    std::size_t end = 0;
    for (; depth > 0; --depth) {
      end = path.find('/', end == 0 ? 0 : end + 1);
      if (end == std::string::npos) return path;
    }
    return path.substr(0, end);
  };
  std::size_t depth = 0;
  for (const auto& one : covered) {
    depth = std::max(depth, static_cast<std::size_t>(std::ranges::count(one.path, '/')));
  }
  while (covered.size() > kMaxCovered) {
    std::map<std::string, std::string> above;
    for (const auto& one : covered) above.emplace(depth == 0 ? "." : cut(one.path, depth), one.reason);
    covered.clear();
    for (const auto& [path, reason] : above) covered.push_back({path, reason});
    if (depth-- == 0) break;
  }
}

class Scan {
 public:
  Scan(sys::RootDir root, const std::string& workspace, const ScanOptions& options, ScanCache* cache)
      : root_(std::move(root)), workspace_(workspace), options_(options), cache_(cache) {
    struct stat status{};
    if (::fstat(root_.descriptor(), &status) == 0) device_ = status.st_dev;
  }

  plan::WorkspaceScan run() {
    if (options_.protected_files != nullptr) {
      if (!options_.only_links && isProtectedWhole()) {
        found_.protected_paths.push_back({.path = std::string(plan::kWholeWorkspace), .directory = true});
      }
      if (!git_.emplace(root_, workspace_).addAbove()) leaveOut("");
      pending_.push_back({.path = std::string(kGit)});  // first: a payload could add entries until the budget ends
    }
    pending_.push_back({});
    while (!pending_.empty() || !bulk_.empty() || !objects_.empty()) {
      std::deque<Work>& queue = !pending_.empty() ? pending_ : !bulk_.empty() ? bulk_ : objects_;
      const Work work = std::move(queue.front());
      queue.pop_front();
      visit(work);
    }
    joinCovered(found_.covered);
    if (git_) std::ranges::copy(git_->found(), std::back_inserter(found_.programs));
    if (options_.protected_files != nullptr && !options_.only_links) {
      protectThroughLinks(root_, workspace_, *options_.protected_files, found_);
    }
    std::sort(found_.secrets.begin(), found_.secrets.end());
    const auto repeated = std::ranges::unique(found_.secrets);
    found_.secrets.erase(repeated.begin(), repeated.end());
    if (cache_ != nullptr)
      std::erase_if(cache_->directories, [&](const auto& one) { return !seen_.contains(one.first); });
    return std::move(found_);
  }

 private:
  /// A directory to be searched. The marks only add rules, or drop those against execution of what the host never
  /// executes there: a payload can make any directory look like another one.
  struct Work {
    std::string path;
    std::size_t depth = 0;
    bool in_repository = false;    ///< a part of a git directory that holds others
    bool in_git = false;           ///< in a git directory: git writes through links
    bool git_members = false;      ///< in what git keeps in a directory `.git`; git's rules say what is executed there
    bool objects = false;          ///< the directory `objects` of a git directory
    bool executed = false;         ///< git executes what is in it, or reads it as configuration
    bool below_protected = false;  ///< in a protected directory, whose content is protected with it
    bool hidden = false;           ///< in a directory that is hidden
  };
  using Directory = ScanCache::Directory;

  /// Whether the workspace lies in a directory that the host executes.
  [[nodiscard]] bool isProtectedWhole() const {
    const auto whole = options_.protected_files->match("");
    if (whole && whole->whole_directory) return true;
    const auto in_git = pathInGitDirectory(workspace_);
    return in_git && policy::isRepositoryMember(*in_git) && !policy::isRepositoryData(*in_git);
  }

  [[nodiscard]] std::size_t cost() const { return entries_ + kReadCost * secrets_.reads(); }

  /// Something makes files protected, and is too large to tell which.
  void leaveOut(const std::string& path) {
    found_.exhausted = true;
    if (found_.unscanned.size() < kMaxNamed) found_.unscanned.push_back(path.empty() ? "." : path);
    ++found_.unscanned_count;
  }

  /// `path` is not searched, so it must not be shown.
  void cover(const std::string& path, std::string reason, bool exhausted = true) {
    found_.covered.push_back({path.empty() ? "." : path, std::move(reason)});
    found_.exhausted = found_.exhausted || exhausted;
  }

  void coverRest(const std::string& path) {
    cover(path, "beyond the first " + std::to_string(options_.max_entries) + " entries");
  }

  /// Whether the user can follow no link in a directory. One that can be searched, but not read, may hide some.
  [[nodiscard]] bool isClosed(const std::string& path) const {
    const long opened = isolation::openBeneath(root_.descriptor(), (path + "/.").c_str(), O_PATH | O_CLOEXEC);
    if (opened >= 0) ::close(static_cast<int>(opened));
    return opened == -EACCES;
  }

  void visit(const Work& work) {
    if (cost() >= options_.max_entries) return coverRest(work.path);
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    long opened = isolation::openBeneath(root_.descriptor(), work.path.c_str(), kFlags);
    if (opened == -EACCES && options_.open_closed && giveOwnerAccess(root_, work.path)) {
      opened = isolation::openBeneath(root_.descriptor(), work.path.c_str(), kFlags);
    }
    if (opened == -ENOENT || opened == -ENOTDIR || opened == -ELOOP) return;
    const bool ours = opened == -EACCES && !work.path.empty() && secrets_.mayOpen(work.path);
    // With protected files it is covered, so that the search after the run leaves what is in it alone.
    if (ours && options_.secrets && !work.hidden && options_.protected_files == nullptr) {
      found_.secrets.push_back(work.path);
      return;
    }
    if (opened == -EACCES) return cover(work.path, "no permission to read it", !isClosed(work.path));
    if (opened < 0) return cover(work.path, strerrordesc_np(static_cast<int>(-opened)));
    sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return cover(work.path, strerrordesc_np(errno));
    if (status.st_dev != device_ && (!options_.enter_mounts || isKernelFilesystem(fd.get()))) {
      return cover(work.path, "another file system is mounted there", false);
    }
    entries_ += 1 + kDirectoryCost;
    if (cache_ == nullptr) {
      const Directory listed = list(std::move(fd), work);
      return listed.complete ? look(work, listed) : void();
    }
    seen_.insert(work.path);
    Directory& known = cache_->directories[work.path];
    const std::int64_t modified = nanoseconds(status.st_mtim), changed = nanoseconds(status.st_ctim);
    const bool same = known.device == status.st_dev && known.inode == status.st_ino && known.modified_ns == modified &&
                      known.changed_ns == changed;
    if (!same) {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      known = list(std::move(fd), work);
      known.device = status.st_dev;
      known.inode = status.st_ino;
      const bool settled = nanoseconds(now) - std::max(modified, changed) > kFreshNs;
      known.modified_ns = settled && known.complete ? modified : 0;
      known.changed_ns = changed;
    }
    if (known.complete) look(work, known);
  }

  /// Lists the names in a directory that matter, and whether it is a git directory. Covers what cannot be listed.
  Directory list(sys::Fd fd, const Work& work) {
    const std::string& path = work.path;
    Directory found;
    DIR* stream = ::fdopendir(fd.get());
    if (stream == nullptr) {
      found.complete = false;
      cover(path, strerrordesc_np(errno));
      return found;
    }
    (void)fd.release();
    std::vector<std::string> folded;  // names that may give it the shape of a git directory
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr && errno == 0) break;
      if (entry == nullptr || cost() >= options_.max_entries) {
        found.complete = false;
        entry == nullptr ? cover(path, strerrordesc_np(errno)) : coverRest(path);
        break;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      ++entries_;
      if (options_.progress && cost() >= next_progress_) {
        next_progress_ = cost() + kProgressEvery;
        options_.progress(entries_);
      }
      if (policy::mayShapeRepository(name)) folded.push_back(policy::foldName(name));
      unsigned char type = entry->d_type;
      if (type == DT_UNKNOWN) {
        struct stat status{};
        if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
          type = S_ISDIR(status.st_mode) ? DT_DIR : S_ISLNK(status.st_mode) ? DT_LNK : DT_REG;
        } else if (errno != ENOENT) {
          cover(join(path, name), strerrordesc_np(errno));
        }
      }
      found.git_file = found.git_file || (type == DT_REG && name == ".git");
      if (type == DT_DIR) {
        found.directories.emplace_back(name);
      } else if (type == DT_LNK && (options_.protected_files != nullptr || matters(work, name))) {
        found.links.emplace_back(name);
      } else if (type != DT_LNK && matters(work, name)) {
        found.files.emplace_back(name);
      }
    }
    ::closedir(stream);
    // Also an incomplete one: its configuration may hold credentials.
    found.shaped = policy::hasRepositoryShape([&](std::string_view name) { return contains(folded, name); });
    found.repository = found.shaped || policy::foldName(directoryName(path)) == kGit;
    return found;
  }

  [[nodiscard]] bool matters(const Work& work, std::string_view name) const {
    if (options_.only_links) return false;
    if (SecretSearch::matters(name)) return true;
    if (options_.protected_files == nullptr || work.git_members || work.below_protected) return false;
    return options_.protected_files->match(join(work.path, name)).has_value();
  }

  /// Applies every rule to what is in a directory. None of them ends the search: a payload could make a directory that
  /// looks like a repository, and hide what it wants to read next time in it.
  void look(const Work& work, const Directory& directory) {
    if (options_.protected_files != nullptr) {
      for (const std::string& name : directory.links) addLink(work, directory, name);
      if (directory.git_file && !git_->addFile(work.path)) leaveOut(work.path);
    }
    const bool judged = options_.secrets && !work.hidden;
    if (judged) {
      const bool git = directory.repository || work.in_repository;
      secrets_.redactConfigs(work.path, directory.files, git);
    }
    if (directory.repository) lookAtRepository(work);
    for (const std::string& name : directory.files) lookAtFile(work, directory, name);
    if (judged) {
      for (const std::string& name : directory.links) {
        secrets_.hideLink(join(work.path, name), name, options_.hold_links);
      }
    }
    for (const std::string& name : directory.directories) lookAtDirectory(work, directory, name);
  }

  void lookAtDirectory(const Work& work, const Directory& directory, const std::string& name) {
    Work next = workFor(work, directory, name);
    if (options_.skipped.contains(next.path)) return;
    if (next.path.size() > kMaxPath || work.depth >= kMaxDepth)
      return cover(work.path, "too many levels of directories");
    if (options_.secrets && !next.hidden && plan::looksSecret(name)) {
      found_.secrets.push_back(next.path);
      if (options_.protected_files == nullptr) return;  // nothing below is shown
      next.hidden = true;
    }
    next.below_protected = next.below_protected || protect(next, true);
    if (options_.protected_files != nullptr && next.path == kGit) return;  // run() has added it
    if (work.objects && holdsObjects(name)) {
      objects_.push_back(std::move(next));
    } else if (next.in_repository || policy::foldName(name) == kGit) {
      pending_.push_front(std::move(next));
    } else {
      (contains(kBulk, name) ? bulk_ : pending_).push_back(std::move(next));
    }
  }

  /// Whether git finds this git directory by its name. Not so for `.GIT`, nor for an empty `.git`.
  [[nodiscard]] bool isUsedByGit(const Work& work, const Directory& directory) const {
    return directory.shaped && directoryName(work.path) == kGit;
  }

  /// The name of a directory, also of the workspace itself.
  [[nodiscard]] std::string directoryName(const std::string& path) const {
    return nameOf(path.empty() ? workspace_ : path);
  }

  /// The rules for a directory, by its place.
  [[nodiscard]] Work workFor(const Work& parent, const Directory& directory, const std::string& name) const {
    Work next{.path = join(parent.path, name),
              .depth = parent.depth + 1,
              .in_repository = parent.in_repository,
              .in_git = parent.in_git,
              .git_members = parent.git_members,
              .executed = parent.executed,
              .below_protected = parent.below_protected,
              .hidden = parent.hidden};
    if (!directory.repository) return next;
    const bool member = policy::isRepositoryMember(name);
    next.in_repository = next.in_repository || contains(kRepositoryParts, name);
    next.in_git = next.in_git || member || policy::foldName(directoryName(parent.path)) == kGit;
    next.git_members = next.git_members || (member && isUsedByGit(parent, directory));
    next.objects = name == "objects";
    next.executed = next.executed || contains(kRepositoryPrograms, name);
    return next;
  }

  void addLink(const Work& work, const Directory& directory, const std::string& name) {
    const std::string path = join(work.path, name);
    const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened < 0) return;
    const sys::Fd fd(static_cast<int>(opened));
    char target[PATH_MAX];
    const ssize_t length = ::readlinkat(fd.get(), "", target, sizeof(target));
    if (length <= 0) return;
    const bool executed = work.executed || (directory.repository && !policy::isRepositoryData(name));
    found_.links.push_back({path, std::string(target, static_cast<std::size_t>(length)), executed});
    const auto& files = *options_.protected_files;
    const bool in_git = work.in_git || directory.repository;
    if (!options_.only_links && (in_git || files.match(path) || files.mayHold(path))) {
      found_.protected_paths.push_back({.path = path, .target = found_.links.back().target});
    }
  }

  /// Records a protected file or directory. True if it is a directory, which protects all that is below.
  bool protect(const Work& work, bool directory) {
    if (options_.protected_files == nullptr || options_.only_links || work.below_protected || work.git_members) {
      return false;
    }
    const auto match = options_.protected_files->match(work.path);
    if (!match || match->object.size() != work.path.size() || match->whole_directory != directory) return false;
    found_.protected_paths.push_back({.path = work.path, .directory = directory});
    return directory;
  }

  void lookAtFile(const Work& work, const Directory& directory, const std::string& name) {
    Work file = work;
    file.path = join(work.path, name);
    file.git_members = file.git_members || isUsedByGit(work, directory);
    protect(file, false);
    if (options_.secrets && !work.hidden) secrets_.hideFile(join(work.path, name), name);
  }

  /// Adds the rules for a git directory: some of its files name programs.
  void lookAtRepository(const Work& work) {
    if (options_.protected_files == nullptr) return;
    entries_ += 5 * kReadCost;
    if (!git_->addDirectory(work.path)) leaveOut(work.path);
    if (!options_.only_links && !work.below_protected) protectRepository(work.path);
  }

  void protectRepository(const std::string& path) {
    for (const std::string_view program : policy::repositoryPrograms()) {
      const bool directory = program.ends_with('/');
      const std::string inside = join(path, directory ? program.substr(0, program.size() - 1) : program);
      const long opened = isolation::openBeneath(root_.descriptor(), inside.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
      if (opened < 0) continue;
      const sys::Fd fd(static_cast<int>(opened));
      struct stat status{};
      if (::fstat(fd.get(), &status) != 0 || S_ISLNK(status.st_mode)) continue;  // addLink() has the links
      found_.protected_paths.push_back({.path = inside, .directory = directory});
    }
  }

  sys::RootDir root_;
  const std::string& workspace_;
  const ScanOptions& options_;
  ScanCache* cache_;
  dev_t device_ = 0;
  std::size_t entries_ = 0, next_progress_ = kProgressEvery;
  std::deque<Work> pending_, bulk_, objects_;
  std::set<std::string> seen_;
  std::optional<GitPrograms> git_;
  plan::WorkspaceScan found_;
  SecretSearch secrets_{root_, workspace_, found_};
};

}  // namespace

plan::WorkspaceScan scanWorkspace(const std::string& workspace, const ScanOptions& options, ScanCache* cache) {
  auto root = sys::RootDir::open(workspace);
  if (!root) return {.covered = {{".", root.error().message()}}, .exhausted = true};
  return scanWorkspace(std::move(*root), workspace, options, cache);
}

plan::WorkspaceScan scanWorkspace(sys::RootDir root, const std::string& workspace, const ScanOptions& options,
                                  ScanCache* cache) {
  std::vector<std::string> denied = deniedMatches(root.descriptor(), options.denied);
  plan::WorkspaceScan found = Scan(std::move(root), workspace, options, cache).run();
  for (std::string& path : denied) found.secrets.push_back(std::move(path));
  return found;
}

}  // namespace caisson::host
