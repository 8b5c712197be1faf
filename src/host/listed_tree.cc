#include "host/listed_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <map>
#include <utility>

#include "base/path_parts.h"
#include "policy/rules/protected_files.h"

namespace caisson::host {
namespace {

constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_MNT_ID;

constexpr std::uint32_t kGitFile = SearchIndex::kGitFile, kConfig = SearchIndex::kConfig;

std::int64_t nanoseconds(const statx_timestamp& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint64_t deviceOf(const struct statx& status) {
  return std::uint64_t{status.stx_dev_major} << 32U | status.stx_dev_minor;
}

/// Of the object itself, also through links above it: what they lead to has another identity than what was listed.
bool describe(int root, const char* path, struct statx& status) {
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*path == 0 ? AT_EMPTY_PATH : 0);
  return ::statx(root, path, flags, kWanted, &status) == 0 && (status.stx_mask & kWanted) == kWanted;
}

FileState stateIn(const struct statx& status) {
  return {.inode = status.stx_ino,
          .size = S_ISDIR(status.stx_mode) ? 0 : status.stx_size,
          .changed_ns = nanoseconds(status.stx_ctime),
          .modified_ns = nanoseconds(status.stx_mtime)};
}

}  // namespace

ListedTree::ListedTree(const sys::RootDir& root, std::optional<SearchIndex> old, Rules rules,
                       std::int64_t settled_after)
    : root_(root), rules_(std::move(rules)), settled_after_(settled_after) {
  struct statx status{};
  if (describe(root.descriptor(), "", status)) {
    mount_ = status.stx_mnt_id;
    device_ = deviceOf(status);
    reliable_ = hasReliableTimes(root.descriptor());
  }
  if (reliable_) old_ = std::move(old);
  now_.directories.emplace_back();
  places_.push_back({.old = old_ ? 0 : SearchIndex::kNone});
  if (!old_) return;
  now_.tracked = old_->tracked;
  now_.text = old_->text;  // positions in it stay valid
  now_.directories.reserve(old_->directories.size());
  places_.reserve(old_->directories.size());
  now_.names.reserve(old_->names.size());
}

void ListedTree::track(std::vector<std::uint64_t> inodes) {
  std::ranges::sort(inodes);
  old_.reset();
  places_[0].old = SearchIndex::kNone;
  now_.tracked = std::move(inodes);
}

bool ListedTree::tracks(std::uint64_t inode) const { return std::ranges::binary_search(now_.tracked, inode); }

const std::string& ListedTree::pathOf(std::uint32_t number) {
  const std::uint32_t parent = places_[number].parent;
  if (number == 0) {
    path_.clear();
    return path_;
  }
  if (parent != above_) {  // often the one of the directory before
    std::size_t length = 0;
    for (std::uint32_t at = parent; at != 0; at = places_[at].parent) length += now_.directories[at].name.length + 1;
    above_path_.resize(length);
    for (std::uint32_t at = parent; at != 0; at = places_[at].parent) {
      const std::string_view name = now_.view(now_.directories[at].name);
      above_path_[--length] = '/';
      length -= name.size();
      name.copy(above_path_.data() + length, name.size());
    }
    above_ = parent;
  }
  path_.assign(above_path_).append(now_.view(now_.directories[number].name));
  return path_;
}

bool ListedTree::isSettled(const FileState& state) const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return reliable_ && std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - state.changed_ns >= settled_after_;
}

std::optional<FileState> ListedTree::stateOf(const std::string& path) const {
  struct statx status{};
  if (!describe(root_.descriptor(), path.c_str(), status) || status.stx_mnt_id != mount_) return std::nullopt;
  return stateIn(status);
}

bool ListedTree::restore(std::uint32_t number, const std::string& path) {
  const std::uint32_t from = places_[number].old;
  if (from == SearchIndex::kNone) return false;
  const SearchIndex::Directory known = old_->directories[from];
  struct statx status{};
  if (known.state.changed_ns == 0 || !describe(root_.descriptor(), path.c_str(), status)) return false;
  if (status.stx_mnt_id != mount_ || deviceOf(status) != device_ || !S_ISDIR(status.stx_mode)) return false;
  if (stateIn(status) != known.state) return false;
  SearchIndex::Directory& directory = now_.directories[number];
  const std::uint32_t name_flags = directory.flags & SearchIndex::kMayMatter;
  directory.state = known.state;
  directory.entries = known.entries;
  directory.flags = (known.flags & ~std::uint32_t{SearchIndex::kMayMatter}) | name_flags;
  directory.first_directory = static_cast<std::uint32_t>(now_.directories.size());
  directory.directories = known.directories;
  directory.first_name = static_cast<std::uint32_t>(now_.names.size());
  directory.names = known.names;
  const auto first_name = old_->names.begin() + known.first_name;
  now_.names.insert(now_.names.end(), first_name, first_name + known.names);
  now_.directories.resize(now_.directories.size() + known.directories);  // `directory` is invalid from here on
  places_.resize(now_.directories.size());
  for (std::uint32_t i = 0; i < known.directories; ++i) {
    const SearchIndex::Directory& from_below = old_->directories[known.first_directory + i];
    SearchIndex::Directory& below = now_.directories[now_.directories.size() - known.directories + i];
    below.name = from_below.name;
    below.flags = from_below.flags & SearchIndex::kMayMatter;
    places_[places_.size() - known.directories + i] = {number, known.first_directory + i};
  }
  return true;
}

ListedTree::Entry ListedTree::examine(int directory, const std::string& path, std::string_view name,
                                      std::uint64_t inode, unsigned char type) const {
  Entry entry{.name = std::string(name), .target = {}, .inode = inode, .type = type};
  if (type == DT_DIR) {
    entry.kept = rules_.directory(path, name);
    return entry;
  }
  entry.tracked = !now_.tracked.empty() && type == DT_REG && tracks(inode);
  entry.kept = (type == DT_LNK && rules_.all_links) || rules_.file(path, name);
  if (type != DT_LNK || !entry.kept) return entry;
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(directory, entry.name.c_str(), target, sizeof(target));
  if (length > 0) entry.target.assign(target, static_cast<std::size_t>(length));
  return entry;
}

int ListedTree::list(std::uint32_t number, sys::Fd fd, const std::string& path, const std::function<bool()>& spend,
                     const std::function<void(const std::string& path, int error)>& unknown) {
  ++listed_;
  struct statx before{};
  const bool described = describe(fd.get(), "", before);
  const FileState state = described ? stateIn(before) : FileState();
  const bool settled = described && before.stx_mnt_id == mount_ && deviceOf(before) == device_ && isSettled(state);
  DIR* stream = ::fdopendir(fd.get());
  if (stream == nullptr) return errno;
  (void)fd.release();
  std::vector<std::string> folded;  // names that may give it the shape of a git directory
  std::vector<Entry> entries;
  std::uint32_t count = 0;
  int error = 0;
  bool complete = true, git_file = false, config = false;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (entry == nullptr) {
      error = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!spend()) {
      error = E2BIG;
      break;
    }
    ++count;
    unsigned char type = entry->d_type;
    std::uint64_t inode = entry->d_ino;
    if (type == DT_UNKNOWN || (!now_.tracked.empty() && !reliable_)) {  // an overlay's d_ino may be another number
      struct stat status{};
      if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        type = S_ISDIR(status.st_mode) ? DT_DIR : S_ISLNK(status.st_mode) ? DT_LNK : DT_REG;
        inode = status.st_ino;
      } else if (errno != ENOENT) {
        unknown(join(path, name), errno);
        complete = false;
      }
    }
    if (policy::mayShapeRepository(name)) folded.push_back(policy::foldName(name));
    git_file = git_file || (type == DT_REG && name == ".git");
    config = config || (type != DT_DIR && policy::isConfigName(name));
    Entry found = examine(::dirfd(stream), path, name, inode, type);
    if (found.kept || found.tracked || type == DT_DIR) entries.push_back(std::move(found));
  }
  ::closedir(stream);
  if (error != 0) return error;
  keep(number, entries);
  SearchIndex::Directory& directory = now_.directories[number];
  directory.state = state;
  directory.entries = count;
  if (!settled || !complete) directory.state.changed_ns = 0;
  if (settled && complete) ++learned_;
  const auto has = [&](std::string_view name) { return std::ranges::find(folded, name) != folded.end(); };
  if (policy::hasRepositoryShape(has)) directory.flags |= SearchIndex::kShaped;
  directory.flags |= (git_file ? kGitFile : 0U) | (config ? kConfig : 0U);
  return 0;
}

void ListedTree::keep(std::uint32_t number, const std::vector<Entry>& entries) {
  std::map<std::string_view, std::uint32_t> known_directories, known_names;
  if (const std::uint32_t from = places_[number].old; from != SearchIndex::kNone) {
    const SearchIndex::Directory& old = old_->directories[from];
    for (std::uint32_t i = 0; i < old.directories; ++i) {
      known_directories.emplace(old_->view(old_->directories[old.first_directory + i].name), old.first_directory + i);
    }
    for (std::uint32_t i = 0; i < old.names; ++i) {
      known_names.emplace(old_->view(old_->names[old.first_name + i].name), old.first_name + i);
    }
  }
  now_.directories[number].first_directory = static_cast<std::uint32_t>(now_.directories.size());
  now_.directories[number].first_name = static_cast<std::uint32_t>(now_.names.size());
  for (const Entry& entry : entries) {
    if (entry.type == DT_DIR) {
      ++now_.directories[number].directories;
      const auto known = known_directories.find(entry.name);
      now_.directories.push_back(
          {.name = now_.add(entry.name), .flags = entry.kept ? std::uint32_t{SearchIndex::kMayMatter} : 0U});
      places_.push_back({number, known == known_directories.end() ? SearchIndex::kNone : known->second});
      continue;
    }
    if (entry.kept) {
      SearchIndex::Name name{.name = now_.add(entry.name), .target = now_.add(entry.target)};
      name.kind = entry.type == DT_LNK ? SearchIndex::Kind::link : SearchIndex::Kind::file;
      if (const auto known = known_names.find(entry.name); known != known_names.end()) {
        const SearchIndex::Name& old = old_->names[known->second];
        if (old.kind == name.kind && old.kind == SearchIndex::Kind::file) {
          name.state = old.state;  // verified before it is used
          name.verdict = old.verdict;
        }
      }
      now_.names.push_back(name);
    }
    if (entry.tracked) {
      now_.names.push_back(
          {.state = {.inode = entry.inode}, .name = now_.add(entry.name), .kind = SearchIndex::Kind::other_name});
    }
  }
  now_.directories[number].names = static_cast<std::uint32_t>(now_.names.size()) - now_.directories[number].first_name;
}

}  // namespace caisson::host
