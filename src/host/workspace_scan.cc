#include "host/workspace_scan.h"

#include <fcntl.h>
#include <sys/stat.h>
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
#include "host/called_files.h"
#include "host/covered.h"
#include "host/denied_matches.h"
#include "host/followed_path.h"
#include "host/git_programs.h"
#include "host/index_flags.h"
#include "host/link_protection.h"
#include "host/listed_tree.h"
#include "host/other_names.h"
#include "host/owner_access.h"
#include "host/scan_marks.h"
#include "host/secret_search.h"
#include "isolation/child.h"
#include "plan/workspace.h"
#include "policy/rules/secret_files.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxNamed = 5;  ///< directories named as not scanned
constexpr std::size_t kReadCost = 2;  ///< entries that reading a file counts as
constexpr std::size_t kDirectoryCost = 4;
constexpr std::size_t kProgressEvery = 1 << 10;
/// An index is written again if it has news about one directory or file of so many, and if it is not small: then a
/// search costs no more than reading it.
constexpr std::size_t kSaveAbove = 256, kSmallIndex = 64;
/// Directories that are scanned last: large, and rarely the place of one's own secrets.
constexpr std::string_view kBulk[] = {"node_modules", ".venv",         "venv",   "target",     "vendor",
                                      "__pycache__",  "site-packages", ".cache", ".gradle",    ".m2",
                                      "dist",         "build",         ".tox",   ".terraform", "bower_components"};
template <class Range>
bool contains(const Range& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class Scan {
 public:
  Scan(const sys::RootDir& root, const std::string& workspace, const ScanOptions& options,
       std::optional<SearchIndex> index)
      : root_(root),
        workspace_(workspace),
        options_(options),
        tree_(root_, std::move(index), rules(), options.settled_after_ns) {
    struct stat status{};
    if (::fstat(root_.descriptor(), &status) == 0) device_ = status.st_dev;
    if (options_.protected_files != nullptr) called_.emplace(root_, workspace_, *options_.protected_files, outside_);
  }

  /// Looks for other names of these files, too.
  void track(std::vector<std::uint64_t> inodes) { tree_.track(std::move(inodes)); }
  /// After run(): hidden files with other names that were not looked for.
  [[nodiscard]] const std::vector<std::uint64_t>& untracked() const { return other_names_.untracked(); }
  [[nodiscard]] ListedTree& tree() { return tree_; }
  /// How many directories and files the index would know in addition.
  [[nodiscard]] std::size_t learned() const { return tree_.learned() + judged_; }

  /// `denied`: what the policy denies, whose other names are hidden with it.
  plan::WorkspaceScan run(const std::vector<std::string>& denied) {
    if (options_.protected_files != nullptr) {
      if (!options_.only_links && isProtectedWhole()) {
        found_.protected_paths.push_back({.path = std::string(plan::kWholeWorkspace), .directory = true});
      }
      if (!git_.emplace(root_, workspace_, outside_).addAbove()) leaveOut("");
    }
    // All that is in a secret directory is hidden, whatever its name.
    const bool hidden = options_.secrets && policy::isInSecretDirectory(workspace_);
    if (hidden) secrets_.hideAll("", "in a secret directory");
    marks_.push_back({.hidden = hidden});
    pending_.push_back(0);
    while (!pending_.empty() || !bulk_.empty() || !objects_.empty()) {
      std::deque<std::uint32_t>& queue = !pending_.empty() ? pending_ : !bulk_.empty() ? bulk_ : objects_;
      const std::uint32_t number = queue.front();
      queue.pop_front();
      visit(number);
    }
    joinCovered(found_.covered);
    if (git_) std::ranges::copy(git_->found(), std::back_inserter(found_.programs));
    if (called_) found_.called = called_->found();
    if (options_.protected_files != nullptr && !options_.only_links) {
      protectThroughLinks(root_, workspace_, *options_.protected_files, outside_, found_);
      for (const policy::NamedProgram& one : found_.called) {
        found_.called_files.push_back({one.path, one.configuration, stateOfFile(root_, one.path)});
      }
    }
    if (!denied.empty()) other_names_.hideDenied(root_, tree_, denied, found_);
    if (options_.secrets) other_names_.hide(root_, tree_, found_);
    std::ranges::sort(found_.secrets);
    const auto repeated = std::ranges::unique(found_.secrets);
    found_.secrets.erase(repeated.begin(), repeated.end());
    return std::move(found_);
  }

 private:
  struct Work : ScanMarks {
    std::string path;
  };
  /// What a directory holds, as far as a rule may be about it.
  struct Directory {
    std::vector<std::string> files, links;
    std::vector<std::uint32_t> file_numbers, link_numbers;  ///< of their names in the tree
    RepositoryShape shape;
    bool git_file = false;  ///< it has a file `.git`, which names a git directory
  };

  /// Which names are kept depends on paths alone, not on what is in the directories above: ListedTree::Rules.
  [[nodiscard]] ListedTree::Rules rules() const {
    const auto is_protected = [this](const std::string& path, std::string_view name) {
      return options_.protected_files != nullptr && !options_.only_links &&
             options_.protected_files->match(join(path, name)).has_value();
    };
    return {.file =
                [this, is_protected](const std::string& path, std::string_view name) {
                  if (options_.only_links) return called_ && called_->matters(path, name);
                  return SecretSearch::matters(name) || is_protected(path, name);
                },
            .directory =
                [is_protected](const std::string& path, std::string_view name) {
                  return policy::mayBeSecret(name) || policy::foldName(name) == kGit || contains(kBulk, name) ||
                         is_protected(path, name);
                },
            .all_links = options_.protected_files != nullptr};
  }

  /// Whether the workspace lies in a directory that the host executes.
  [[nodiscard]] bool isProtectedWhole() const {
    const auto whole = options_.protected_files->match("");
    if (whole && whole->whole_directory) return true;
    const auto in_git = pathInGitDirectory(workspace_);
    return in_git && policy::isRepositoryMember(*in_git) && !policy::isRepositoryData(*in_git);
  }

  [[nodiscard]] std::size_t cost() const {
    return entries_ + kReadCost * (secrets_.reads() + (called_ ? called_->reads() : 0));
  }

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

  void visit(std::uint32_t number) {
    const std::string& path = tree_.pathOf(number);
    if (cost() >= options_.max_entries) return coverRest(path);
    if (!tree_.restore(number, path)) {
      if (!list(number, path)) return;
    } else {
      entries_ += 1 + kDirectoryCost + tree_.at(number).entries;
    }
    marks_.resize(tree_.size());
    look(number, path);
  }

  /// Opens a directory and lists it. False: it is covered, or gone.
  bool list(std::uint32_t number, const std::string& path) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    const auto covered = [&](const char* reason, bool exhausted = true) {
      cover(path, reason, exhausted);
      return false;
    };
    long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), kFlags);
    if (opened == -EACCES && options_.open_closed && giveOwnerAccess(root_, path)) {
      opened = isolation::openBeneath(root_.descriptor(), path.c_str(), kFlags);
    }
    if (opened == -ENOENT || opened == -ENOTDIR || opened == -ELOOP) return false;
    const bool ours = opened == -EACCES && !path.empty() && secrets_.mayOpen(path);
    // With protected files it is covered, so that the search after the run leaves what is in it alone.
    if (ours && options_.secrets && !marks_[number].hidden && options_.protected_files == nullptr) {
      found_.secrets.push_back(path);
      return false;
    }
    if (opened == -EACCES) return covered("no permission to read it", !isClosed(path));
    if (opened < 0) return covered(strerrordesc_np(static_cast<int>(-opened)));
    sys::Fd fd(static_cast<int>(opened));
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return covered(strerrordesc_np(errno));
    if (status.st_dev != device_ && (!options_.enter_mounts || isKernelFilesystem(fd.get()))) {
      return covered("another file system is mounted there", false);
    }
    entries_ += 1 + kDirectoryCost;
    const auto unknown = [&](const std::string& entry, int error) { cover(entry, strerrordesc_np(error)); };
    const int error = tree_.list(number, std::move(fd), path, [this] { return spend(); }, unknown);
    if (error == E2BIG) coverRest(path);
    return error == 0 || (error != E2BIG && covered(strerrordesc_np(error)));
  }

  /// Counts an entry. False: it is one too many.
  bool spend() {
    if (cost() >= options_.max_entries) return false;
    ++entries_;
    if (options_.progress && cost() >= next_progress_) {
      next_progress_ = cost() + kProgressEvery;
      options_.progress(entries_);
    }
    return true;
  }

  [[nodiscard]] bool isCalledGit(std::uint32_t number) const {
    const SearchIndex::Directory& directory = tree_.at(number);
    if (number != 0 && (directory.flags & SearchIndex::kMayMatter) == 0) return false;
    return policy::foldName(number == 0 ? nameOf(workspace_) : tree_.view(directory.name)) == kGit;
  }

  void look(std::uint32_t number, const std::string& path) {
    const SearchIndex::Directory& known = tree_.at(number);
    const std::uint32_t first = known.first_directory, end = first + known.directories;
    Directory directory{.git_file = (known.flags & SearchIndex::kGitFile) != 0};
    directory.shape.shaped = (known.flags & SearchIndex::kShaped) != 0;
    directory.shape.repository = directory.shape.shaped || isCalledGit(number);
    // A payload could have moved `HEAD` away, and put it back later.
    if (!directory.shape.repository && (known.flags & SearchIndex::kConfig) != 0) {
      directory.shape.repository = secrets_.isRepositoryConfig(join(path, "config"));
    }
    const ScanMarks& marks = marks_[number];
    const bool deepest = marks.depth >= kMaxDepth;
    const bool all = directory.shape.repository || marks.objects || !options_.skipped.empty();
    const bool matters = directory.shape.repository || directory.git_file || known.names > 0;
    std::optional<Work> work;
    const auto described = [&]() -> const Work& {
      if (!work) work.emplace(Work{marks_[number], path});
      return *work;
    };
    if (matters) {
      addNames(known, path, directory);
      applyRules(described(), directory);
    }
    for (std::uint32_t below = first; below < end; ++below) {
      const SearchIndex::Directory& next = tree_.at(below);
      if (deepest || path.size() + 1 + next.name.length > kMaxPath)
        return cover(path, "too many levels of directories");
      if (all || (next.flags & SearchIndex::kMayMatter) != 0) {
        lookAtDirectory(described(), directory, below);
        continue;
      }
      marks_[below] = marks_[number];
      ++marks_[below].depth;
      marks_[below].objects = false;
      marks_[below].in_repository ? pending_.push_front(below) : pending_.push_back(below);
    }
  }

  /// Collects the names that matter.
  void addNames(const SearchIndex::Directory& known, const std::string& path, Directory& directory) {
    for (std::uint32_t i = known.first_name; i < known.first_name + known.names; ++i) {
      const SearchIndex::Name& one = tree_.nameAt(i);
      std::string name(tree_.view(one.name));
      if (one.kind == SearchIndex::Kind::other_name) {
        other_names_.add(one.state.inode, join(path, name));
      } else if (one.kind == SearchIndex::Kind::link) {
        directory.links.push_back(std::move(name));
        directory.link_numbers.push_back(i);
      } else {
        directory.files.push_back(std::move(name));
        directory.file_numbers.push_back(i);
      }
    }
  }

  /// Applies every rule to what is in a directory. None of them ends the search: a payload could make a directory that
  /// looks like a repository, and hide what it wants to read next time in it.
  void applyRules(const Work& work, const Directory& directory) {
    if (options_.protected_files != nullptr) {
      for (std::size_t i = 0; i < directory.links.size(); ++i) {
        addLink(work, directory, directory.links[i], tree_.view(tree_.nameAt(directory.link_numbers[i]).target));
      }
      if (directory.git_file && !git_->addFile(work.path)) leaveOut(work.path);
    }
    const bool judged = options_.secrets && !work.hidden;
    if (judged) {
      secrets_.redactConfigs(work.path, directory.files, directory.links,
                             directory.shape.repository || work.in_repository);
    }
    if (directory.shape.repository) lookAtRepository(work);
    for (std::size_t i = 0; i < directory.files.size(); ++i) {
      lookAtFile(work, directory, directory.files[i], directory.file_numbers[i]);
    }
    if (!judged) return;
    for (const std::string& name : directory.links) {
      secrets_.hideLink(join(work.path, name), name, options_.hold_links);
    }
  }

  void lookAtDirectory(const Work& work, const Directory& directory, std::uint32_t number) {
    const std::string name(tree_.view(tree_.at(number).name));
    Work next = workFor(work, directory, name);
    if (options_.skipped.contains(next.path)) return;
    if (options_.secrets && !next.hidden && secrets_.hideDirectory(next.path, name)) {
      if (options_.protected_files == nullptr) return;  // nothing below is shown
      next.hidden = true;
    }
    next.below_protected = next.below_protected || protect(next, true);
    marks_[number] = next;
    if (work.objects && holdsObjects(name)) {
      objects_.push_back(number);
    } else if (next.in_repository || policy::foldName(name) == kGit) {
      pending_.push_front(number);
    } else {
      (contains(kBulk, name) ? bulk_ : pending_).push_back(number);
    }
  }

  /// The name of a directory, also of the workspace itself.
  [[nodiscard]] std::string directoryName(const std::string& path) const {
    return nameOf(path.empty() ? workspace_ : path);
  }

  /// The rules for a directory, by its place.
  [[nodiscard]] Work workFor(const Work& parent, const Directory& directory, const std::string& name) const {
    return {marksBelow(parent, directory.shape, directoryName(parent.path), name), join(parent.path, name)};
  }

  void addLink(const Work& work, const Directory& directory, const std::string& name, std::string_view target) {
    const std::string path = join(work.path, name);
    if (target.empty()) return;
    const bool executed = work.executed || (directory.shape.repository && !policy::isRepositoryData(name));
    found_.links.push_back({path, std::string(target), executed});
    const auto& files = *options_.protected_files;
    const bool in_git = work.in_git || directory.shape.repository;
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

  void lookAtFile(const Work& work, const Directory& directory, const std::string& name, std::uint32_t number) {
    Work file = work;
    file.path = join(work.path, name);
    file.git_members = file.git_members || isUsedByGit(directory.shape, directoryName(work.path));
    protect(file, false);
    if (called_ && called_->matters(work.path, name)) called_->add(file.path);
    if (options_.secrets && !work.hidden) {
      hideFile(std::move(file.path), name, work.in_git || directory.shape.repository, tree_.nameAt(number));
    }
  }

  /// Judges a file, unless its content was judged in the state that it is in now. `git`: it is in a git directory.
  void hideFile(std::string path, const std::string& name, bool git, SearchIndex::Name& known) {
    using Verdict = SearchIndex::Verdict;
    if (known.verdict != Verdict::unknown && !(git && known.verdict == Verdict::harmless)) {
      if (tree_.stateOf(path) == known.state) {
        if (known.verdict == Verdict::secret) secrets_.hideKnown(std::move(path), name);
        return;
      }
      known.verdict = Verdict::unknown;
    }
    const std::size_t reads = secrets_.reads(), secrets = found_.secrets.size();
    const auto state = tree_.stateOf(path);
    secrets_.hideFile(std::move(path), name, git);
    if (secrets_.reads() == reads || !state || !tree_.isSettled(*state)) return;
    known.state = *state;
    known.verdict = found_.secrets.size() > secrets ? Verdict::secret
                    : git                           ? Verdict::harmless_in_git
                                                    : Verdict::harmless;
    ++judged_;
  }

  /// Adds the rules for a git directory: some of its files name programs.
  void lookAtRepository(const Work& work) {
    if (options_.protected_files == nullptr) return;
    entries_ += 5 * kReadCost;
    if (!git_->addDirectory(work.path)) leaveOut(work.path);
    if (options_.only_links) return;
    if (!work.below_protected) protectRepository(root_, work.path, found_);
    found_.git_directories.push_back({work.path, unwatchedFiles(root_, work.path)});
  }

  const sys::RootDir& root_;
  const std::string& workspace_;
  const ScanOptions& options_;
  ListedTree tree_;
  std::vector<ScanMarks> marks_;  ///< of the directories of the tree
  dev_t device_ = 0;
  std::size_t entries_ = 0, next_progress_ = kProgressEvery, judged_ = 0;
  std::deque<std::uint32_t> pending_, bulk_, objects_;
  OtherNames other_names_;
  std::optional<GitPrograms> git_;
  std::optional<CalledFiles> called_;
  plan::WorkspaceScan found_;
  const policy::OutsideLinks outside_ = linksOutside(workspace_);
  SecretSearch secrets_{root_, workspace_, options_.shown, found_, outside_};
};

}  // namespace

namespace {

/// What decides which names are in the index and how their content was judged, besides the program: also the place of
/// the workspace, and the files that are shown.
std::string indexRules(const std::string& workspace, const ScanOptions& options) {
  std::string rules = options.only_links ? "links" : options.protected_files != nullptr ? "protected" : "secrets";
  rules += '\0' + workspace;
  for (const std::string& path : options.shown) rules += "\nshown " + path;
  for (const std::string& pattern : *options.index) rules += '\0' + pattern;
  return rules;
}

}  // namespace

plan::WorkspaceScan scanWorkspace(const std::string& workspace, const ScanOptions& options, ScanCache* cache) {
  auto root = sys::RootDir::open(workspace);
  if (!root) return {.covered = {{".", root.error().message()}}, .exhausted = true};
  return scanWorkspace(std::move(*root), workspace, options, cache);
}

plan::WorkspaceScan scanWorkspace(sys::RootDir root, const std::string& workspace, const ScanOptions& options,
                                  ScanCache* cache) {
  std::vector<std::string> denied = deniedMatches(root.descriptor(), options.denied);
  std::vector<std::string> all_denied = options.denied_paths;
  all_denied.insert(all_denied.end(), denied.begin(), denied.end());
  std::optional<IndexFile> file;
  if (options.index) {
    file.emplace(root.descriptor(), workspace, indexRules(workspace, options));
  }
  std::optional<SearchIndex> index;
  if (cache != nullptr && cache->filled) {
    index = std::move(cache->index);
  } else if (file) {
    index = file->load();
  }
  const bool first = cache == nullptr || !cache->filled;
  std::optional<Scan> scan(std::in_place, root, workspace, options, std::move(index));
  plan::WorkspaceScan found = scan->run(all_denied);
  if (const std::vector<std::uint64_t> untracked = scan->untracked(); !untracked.empty()) {
    scan.emplace(root, workspace, options, std::nullopt);
    scan->track(untracked);
    found = scan->run(all_denied);
  }
  const std::size_t listed = scan->tree().listed(), learned = scan->learned();
  SearchIndex known = scan->tree().take();
  known.compact();
  const std::size_t worth = known.directories.size() / kSaveAbove + 1;
  if (file && options.keep_index && first && learned >= worth && known.directories.size() + learned > kSmallIndex) {
    file->save(known);
  }
  if (cache != nullptr) {
    cache->index = std::move(known);
    cache->filled = true;
    cache->listed = listed;
    cache->listings += listed;
  }
  for (std::string& path : denied) found.secrets.push_back(std::move(path));
  return found;
}

}  // namespace caisson::host
