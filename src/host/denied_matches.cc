#include "host/denied_matches.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <set>
#include <string_view>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "policy/rules/denied_names.h"
#include "policy/rules/name_pattern.h"

namespace caisson::host {
namespace {

bool exists(int root, const std::string& path) {
  const long fd = isolation::openBeneath(root, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd >= 0;
}

/// A directory with a longer path is denied as a whole where an entry may mean something in it: a program can make
/// paths that no system call takes.
constexpr std::size_t kLongestRead = PATH_MAX / 2;

struct Listing {
  bool complete = false;  ///< false for a directory that cannot be read
  std::vector<std::string> files;
  std::vector<std::string> directories;  ///< also what may be one
};

Listing list(int root, const std::string& directory) {
  Listing listing;
  const long fd = isolation::openBeneath(root, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    listing.complete = fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP;  // not a directory (any more)
    return listing;
  }
  DIR* stream = ::fdopendir(static_cast<int>(fd));
  if (stream == nullptr) {
    ::close(static_cast<int>(fd));
    return listing;
  }
  errno = 0;
  while (const dirent* item = ::readdir(stream)) {
    const std::string_view name = item->d_name;
    const bool may_be_directory = item->d_type == DT_DIR || item->d_type == DT_UNKNOWN;
    if (name != "." && name != "..") (may_be_directory ? listing.directories : listing.files).emplace_back(name);
  }
  listing.complete = errno == 0;
  ::closedir(stream);
  return listing;
}

/// An entry, and what is left of it in a directory.
struct Left {
  const policy::DeniedEntry* entry = nullptr;
  policy::DeniedEntry::Positions positions;
};

struct Directory {
  std::string path;
  std::vector<Left> left;  ///< of every entry that can mean something in it
};

/// Finds what the entries match. Each directory is read once, whatever the number of entries and of their `**`.
class Matches {
 public:
  explicit Matches(int root) : root_(root) {}

  std::vector<std::string> find(std::vector<Left> left) {
    open_.push_back({.path = "", .left = std::move(left)});
    while (!open_.empty()) {
      const Directory directory = std::move(open_.back());
      open_.pop_back();
      look(directory);
    }
    return std::move(found_);
  }

 private:
  void look(const Directory& directory) {
    std::set<std::string> names;
    for (const Left& one : directory.left) {
      std::vector<std::string> only = one.entry->onlyNames(one.positions);
      if (only.empty()) return lookAtAll(directory);
      names.insert(std::make_move_iterator(only.begin()), std::make_move_iterator(only.end()));
    }
    for (const std::string& name : names) {
      if (exists(root_, join(directory.path, name))) take(directory, name, true);
    }
  }

  void lookAtAll(const Directory& directory) {
    const Listing listing = list(root_, directory.path);
    for (const std::string& name : listing.files) take(directory, name, false);
    for (const std::string& name : listing.directories) take(directory, name, true);
    // What cannot be read may hold what is denied.
    if (!listing.complete && !directory.path.empty()) found_.push_back(directory.path);
  }

  void take(const Directory& directory, const std::string& name, bool may_be_directory) {
    Directory below{.path = join(directory.path, name), .left = {}};
    bool denied = false;
    for (const Left& one : directory.left) {
      Left next{.entry = one.entry, .positions = one.entry->after(one.positions, name)};
      if (next.entry->denies(next.positions)) {
        denied = true;  // with all that is in it, so nothing is left of the entry
      } else if (may_be_directory && next.entry->leadsOn(next.positions)) {
        below.left.push_back(std::move(next));
      }
    }
    const bool enters = !below.left.empty() && below.path.size() <= kLongestRead;
    if (denied || (!enters && !below.left.empty())) found_.push_back(below.path);
    if (enters) open_.push_back(std::move(below));
  }

  int root_;
  std::vector<Directory> open_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> deniedMatches(int workspace, const std::vector<std::string>& entries) {
  std::vector<policy::DeniedEntry> denied;
  for (const std::string& entry : entries) {
    if (!policy::splitParts(entry, '/').empty()) denied.emplace_back(entry);
  }
  std::vector<Left> left;
  for (const policy::DeniedEntry& entry : denied) left.push_back({.entry = &entry, .positions = entry.start()});
  return Matches(workspace).find(std::move(left));
}

bool mayMatch(const std::vector<std::string>& entries, const std::string& name) {
  return std::ranges::any_of(
      entries, [&](const std::string& entry) { return policy::deniesName(entry.substr(entry.rfind('/') + 1), name); });
}

}  // namespace caisson::host
