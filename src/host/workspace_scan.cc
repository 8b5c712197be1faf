#include "host/workspace_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <iterator>
#include <optional>
#include <set>

#include "base/path_parts.h"
#include "host/git_programs.h"
#include "host/link_protection.h"
#include "host/owner_access.h"
#include "isolation/child.h"
#include "plan/secrets.h"
#include "policy/rules/git_config.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxNamed = 5;          ///< directories named as not scanned
constexpr std::size_t kKeyBytes = 64 * 1024;  ///< of a file that are searched for a private key
constexpr std::size_t kConfigBytes = 64 * 1024;
constexpr std::size_t kReadCost = 8;    ///< entries that reading a file counts as
constexpr std::size_t kMaxPath = 3800;  ///< of a directory, so that the names in it fit into PATH_MAX
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

/// A directory in a git directory's `objects` with objects only, which git never writes again.
bool holdsObjects(std::string_view name) {
  return name == "pack" || (name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos);
}

template <class Range>
bool contains(const Range& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// Of this thread.
std::chrono::nanoseconds cpuTime() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::nanoseconds(nanoseconds(used));
}

class Scan {
 public:
  Scan(sys::RootDir root, const std::string& workspace, const ScanOptions& options, ScanCache* cache)
      : root_(std::move(root)),
        workspace_(workspace),
        options_(options),
        cache_(cache),
        deadline_(Clock::now() + options.max_time),
        cpu_deadline_(cpuTime() + options.max_cpu_time) {
    struct stat status{};
    if (::fstat(root_.descriptor(), &status) == 0) device_ = status.st_dev;
  }

  plan::WorkspaceScan run() {
    if (options_.protected_files != nullptr) {
      if (!git_.emplace(root_, workspace_).addAbove()) exceed("");
      pending_.push_back({.path = std::string(kGit)});  // first: a payload could add entries until the budget ends
    }
    pending_.push_back({});
    while (!pending_.empty() || !bulk_.empty()) {
      std::deque<Work>& queue = pending_.empty() ? bulk_ : pending_;
      const Work work = std::move(queue.front());
      queue.pop_front();
      if (entries_ >= options_.max_entries || Clock::now() >= deadline_ || cpuTime() >= cpu_deadline_) {
        exceed(work.path);
        continue;
      }
      visit(work);
    }
    if (git_) std::ranges::copy(git_->found(), std::back_inserter(found_.programs));
    if (options_.protected_files != nullptr && !options_.only_links) {
      protectThroughLinks(root_, workspace_, *options_.protected_files, found_);
    }
    std::sort(found_.secrets.begin(), found_.secrets.end());
    if (cache_ != nullptr)
      std::erase_if(cache_->directories, [&](const auto& one) { return !seen_.contains(one.first); });
    return std::move(found_);
  }

 private:
  struct Work {
    std::string path;
    bool in_repository = false;  ///< a part of a git directory that holds others
    bool only_links = false;     ///< in a protected directory, or in a git directory
    bool in_git = false;         ///< in a git directory: git writes through links
    bool objects = false;        ///< the directory `objects` of a git directory
    bool executed = false;       ///< git executes what is in it, or reads it as configuration
  };
  using Directory = ScanCache::Directory;

  void leaveOut(const std::string& path) {
    if (found_.unscanned.size() < kMaxNamed) found_.unscanned.push_back(path.empty() ? "." : path);
    ++found_.unscanned_count;
  }

  /// As leaveOut(), since a limit of the search was reached or it failed.
  void exceed(const std::string& path) {
    leaveOut(path);
    found_.exhausted = true;
  }

  /// Whether the user can follow no link in a directory. One that can be searched, but not read, may hide some.
  [[nodiscard]] bool isClosed(const std::string& path) const {
    const long opened = isolation::openBeneath(root_.descriptor(), (path + "/.").c_str(), O_PATH | O_CLOEXEC);
    if (opened >= 0) ::close(static_cast<int>(opened));
    return opened == -EACCES;
  }

  void visit(const Work& work) {
    if (work.path.size() > kMaxPath) return exceed(work.path.substr(0, kMaxPath));
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    long opened = isolation::openBeneath(root_.descriptor(), work.path.c_str(), kFlags);
    if (opened == -EACCES && options_.open_closed && giveOwnerAccess(root_, work.path)) {
      opened = isolation::openBeneath(root_.descriptor(), work.path.c_str(), kFlags);
    }
    if (opened == -ENOENT || opened == -ENOTDIR || opened == -ELOOP) return;
    if (opened < 0) return opened == -EACCES && isClosed(work.path) ? leaveOut(work.path) : exceed(work.path);
    sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0 || status.st_dev != device_) return leaveOut(work.path);
    ++entries_;
    if (cache_ == nullptr) return look(work, list(std::move(fd), work.path));
    seen_.insert(work.path);
    Directory& known = cache_->directories[work.path];
    const std::int64_t modified = nanoseconds(status.st_mtim), changed = nanoseconds(status.st_ctim);
    const bool same = known.device == status.st_dev && known.inode == status.st_ino && known.modified_ns == modified &&
                      known.changed_ns == changed;
    if (!same) {
      timespec now{};
      ::clock_gettime(CLOCK_REALTIME, &now);
      known = list(std::move(fd), work.path);
      known.device = status.st_dev;
      known.inode = status.st_ino;
      const bool settled = nanoseconds(now) - std::max(modified, changed) > kFreshNs;
      known.modified_ns = settled && known.complete ? modified : 0;
      known.changed_ns = changed;
    }
    look(work, known);
  }

  /// Lists the names in a directory that matter, and whether it is a git directory.
  Directory list(sys::Fd fd, const std::string& path) {
    Directory found;
    DIR* stream = ::fdopendir(fd.get());
    if (stream == nullptr) {
      found.complete = false;
      exceed(path);
      return found;
    }
    (void)fd.release();
    std::vector<std::string> folded;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entries_ >= options_.max_entries) {
        found.complete = false;
        exceed(path);
        break;
      }
      ++entries_;
      folded.push_back(policy::foldName(name));
      unsigned char type = entry->d_type;
      if (type == DT_UNKNOWN) {
        struct stat status{};
        if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
          type = S_ISDIR(status.st_mode) ? DT_DIR : S_ISREG(status.st_mode) ? DT_REG : DT_LNK;
        }
      }
      found.git_file = found.git_file || (type == DT_REG && name == ".git");
      if (type == DT_DIR) {
        found.directories.emplace_back(name);
      } else if (type == DT_LNK && (options_.protected_files != nullptr || matters(path, name))) {
        found.links.emplace_back(name);
      } else if (type != DT_LNK && matters(path, name)) {
        found.files.emplace_back(name);
      }
    }
    ::closedir(stream);
    // Also an incomplete one: its configuration may hold credentials.
    found.repository = policy::foldName(path.substr(path.rfind('/') + 1)) == kGit ||
                       policy::hasRepositoryShape([&](std::string_view name) { return contains(folded, name); });
    return found;
  }

  [[nodiscard]] bool matters(const std::string& path, std::string_view name) const {
    if (options_.only_links) return false;
    if (plan::looksSecret(name) || plan::mayHoldKey(name) || name == "config" || name == "config.worktree") return true;
    return options_.protected_files != nullptr && options_.protected_files->match(join(path, name)).has_value();
  }

  void look(const Work& work, const Directory& directory) {
    if (options_.protected_files != nullptr) {
      for (const std::string& name : directory.links) addLink(work, directory, name);
      if (directory.git_file && !git_->addFile(work.path)) exceed(work.path);
    }
    if ((directory.repository || work.in_repository) && !work.only_links) redactConfigs(work.path, directory);
    if (directory.repository && !work.only_links) return lookAtRepository(work.path, directory);
    if (!work.in_repository && !work.only_links) {
      for (const std::string& name : directory.files) lookAtFile(work.path, name);
      for (const std::string& name : directory.links) hideSecret(work.path, name);
    }
    for (const std::string& name : directory.directories) {
      const std::string path = join(work.path, name);
      if (path == options_.skipped) continue;
      if (work.only_links) {
        if (work.objects && holdsObjects(name)) continue;
        pending_.push_back({.path = path, .only_links = true, .in_git = work.in_git, .executed = work.executed});
        continue;
      }
      if (options_.secrets && !work.in_repository && plan::looksSecret(name)) {
        found_.secrets.push_back(path);
        continue;
      }
      if (protect(path, true)) {
        pending_.push_back({.path = path, .only_links = true});
        continue;
      }
      if (options_.protected_files != nullptr && path == kGit) continue;  // run() has added it
      std::deque<Work>& queue = contains(kBulk, name) ? bulk_ : pending_;
      Work next{.path = path, .in_repository = work.in_repository};
      if (work.in_repository || policy::foldName(name) == kGit) {
        pending_.push_front(std::move(next));
      } else {
        queue.push_back(std::move(next));
      }
    }
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

  /// Records a protected file or directory. True if it is a directory, so that nothing below needs to be looked at.
  bool protect(const std::string& path, bool directory) {
    if (options_.protected_files == nullptr || options_.only_links) return false;
    const auto match = options_.protected_files->match(path);
    if (!match || match->object.size() != path.size() || match->whole_directory != directory) return false;
    found_.protected_paths.push_back({.path = path, .directory = directory});
    return directory;
  }

  void lookAtFile(const std::string& directory, const std::string& name) {
    protect(join(directory, name), false);
    hideSecret(directory, name);
  }

  void hideSecret(const std::string& directory, const std::string& name) {
    const std::string path = join(directory, name);
    if (options_.secrets && isSecret(path, name)) found_.secrets.push_back(path);
  }

  bool isSecret(const std::string& path, const std::string& name) {
    if (plan::looksSecret(name)) {
      return !plan::mayBePublic(name) || !plan::hasOnlyPublicKeys(beginning(path, kKeyBytes));
    }
    return plan::mayHoldKey(name) && plan::hasPrivateKey(beginning(path, kKeyBytes));
  }

  /// Looks for credentials in the configurations of a git directory, and in what they include.
  void redactConfigs(const std::string& path, const Directory& directory) {
    if (!options_.secrets) return;
    std::vector<std::string> configs;
    for (const std::string& name : directory.files) {
      if (name == "config" || name == "config.worktree") configs.push_back(join(path, name));
    }
    for (std::size_t i = 0; i < configs.size() && i < kMaxGitConfigs; ++i) {
      const std::string config = configs[i];
      if (!configs_.insert(config).second) continue;
      const std::string text = beginning(config, kConfigBytes + 1);
      if (text.size() > kConfigBytes) {  // credentials may be beyond what is searched
        found_.secrets.push_back(config);
        continue;
      }
      if (auto redacted = plan::redactGitConfig(text)) found_.redacted.push_back({config, std::move(*redacted)});
      for (const std::string& value : policy::pathsInGitConfig(text).included) {
        const auto named = absolutePath(workspace_ + "/" + directoryOf(config), value);
        if (auto inside = named ? pathBelow(workspace_, *named) : std::nullopt) configs.push_back(*std::move(inside));
      }
    }
    if (configs.size() > kMaxGitConfigs) exceed(configs[kMaxGitConfigs]);
  }

  /// Looks at a git directory: only some of its files name programs.
  void lookAtRepository(const std::string& path, const Directory& directory) {
    if (options_.protected_files != nullptr) {
      entries_ += 5 * kReadCost;
      if (!git_->addDirectory(path)) exceed(path);
      if (!options_.only_links) protectRepository(path);
    }
    for (const std::string& name : directory.directories) {
      const std::string inside = join(path, name);
      if (contains(kRepositoryParts, name)) {
        pending_.push_front({.path = inside, .in_repository = true});
      } else if (options_.protected_files != nullptr) {
        const bool executed = contains(kRepositoryPrograms, name);
        pending_.push_back(
            {.path = inside, .only_links = true, .in_git = true, .objects = name == "objects", .executed = executed});
      }
    }
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

  /// The first bytes of a regular file; nothing of anything else.
  std::string beginning(const std::string& path, std::size_t bytes) {
    entries_ += kReadCost;
    const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) return "";
    const sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
    std::string text(std::min(bytes, static_cast<std::size_t>(status.st_size)), '\0');
    const ssize_t got = ::read(fd.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  sys::RootDir root_;
  const std::string& workspace_;
  const ScanOptions& options_;
  ScanCache* cache_;
  const Clock::time_point deadline_;
  const std::chrono::nanoseconds cpu_deadline_;
  dev_t device_ = 0;
  std::size_t entries_ = 0;
  std::deque<Work> pending_, bulk_;
  std::set<std::string> seen_;
  std::set<std::string> configs_;  ///< of git, which redactConfigs() has read
  std::optional<GitPrograms> git_;
  plan::WorkspaceScan found_;
};

}  // namespace

std::vector<std::string> deniedMatches(int workspace, const std::vector<std::string>& patterns) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns) {
    const std::size_t slash = pattern.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : pattern.substr(0, slash);
    const char* last = pattern.c_str() + (slash == std::string::npos ? 0 : slash + 1);
    const long fd = isolation::openBeneath(workspace, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) continue;
    DIR* stream = ::fdopendir(static_cast<int>(fd));
    if (stream == nullptr) continue;
    while (const dirent* item = ::readdir(stream)) {
      const std::string_view name = item->d_name;
      if (name == "." || name == ".." || ::fnmatch(last, item->d_name, FNM_PERIOD) != 0) continue;
      found.push_back(join(directory, name));
    }
    ::closedir(stream);
  }
  return found;
}

bool mayMatch(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str() + pattern.rfind('/') + 1, name.c_str(), FNM_PERIOD) == 0;
  });
}

plan::WorkspaceScan scanWorkspace(const std::string& workspace, const ScanOptions& options, ScanCache* cache) {
  auto root = sys::RootDir::open(workspace);
  if (!root) return {};
  return scanWorkspace(std::move(*root), workspace, options, cache);
}

plan::WorkspaceScan scanWorkspace(sys::RootDir root, const std::string& workspace, const ScanOptions& options,
                                  ScanCache* cache) {
  const auto again = sys::RootDir::share(root.descriptor(), {.known_as = workspace});
  if (!again) return {.unscanned = {"."}, .unscanned_count = 1, .exhausted = true};
  plan::WorkspaceScan found = Scan(std::move(root), workspace, options, cache).run();
  for (std::string& path : deniedMatches(again->descriptor(), options.denied)) found.secrets.push_back(std::move(path));
  return found;
}

}  // namespace caisson::host
