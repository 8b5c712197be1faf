#include "session/commit/directory_baseline.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "session/commit/real_tree.h"
#include "session/layers/steps.h"
#include "session/store/workspace_root.h"

namespace caisson::session {
namespace {

using sys::Fd;

constexpr const char* kDirectoriesFile = "directories";
constexpr const char* kNamesFile = "names";
constexpr std::size_t kMaxDirectoryEntries = 200'000, kMaxDirectories = 10'000;
constexpr std::size_t kMaxDirectoryPath = 3800;
constexpr std::uint64_t kMaxBaselineBytes = 256U << 20;
/// File times have the precision of the kernel's tick: a change that is dated this shortly before the session's
/// beginning may have come after it.
constexpr std::int64_t kTick = 10'000'000;

std::string directoriesHeader(const Moment& began) {
  return "caisson directories 1 " + std::to_string(began.wall_ns) + "\n";
}

std::string namesHeader(const Moment& began) { return "caisson names 1 " + std::to_string(began.wall_ns) + "\n"; }

/// FNV-1a, continued from the hash of what comes before. Of a session's own path that has the hash of another one, a
/// commit can only say that it is a conflict.
constexpr std::uint64_t kNoPath = 0xcbf29ce484222325ULL;
std::uint64_t hashOf(std::string_view text, std::uint64_t before) {
  for (const char one : text) before = (before ^ static_cast<unsigned char>(one)) * 0x100000001b3ULL;
  return before;
}

struct WalkedDirectory {
  std::uint64_t inode = 0;
  std::int64_t changed_ns = 0;
  mode_t mode = 0;
  bool settled = false;  ///< it did not change since shortly before the session began
  bool operator==(const WalkedDirectory&) const = default;
};
/// In the order of a walk: a directory comes before those in it.
using WalkedDirectories = std::vector<std::pair<std::string, WalkedDirectory>>;

/// One walk over the real workspace. Follows no link and enters no other file system.
class DirectoryWalk {
 public:
  DirectoryWalk(const sys::RootDir& root, const Moment& began)
      : root_(root), precise_(preciseDevice(root.descriptor())), settled_(began.wall_ns - kTick) {}

  WalkedDirectories run() {
    pending_.push_back({"", true});
    while (!pending_.empty() && listed_ < kMaxDirectoryEntries && walked_++ < kMaxDirectories) {
      const Pending next = std::move(pending_.front());
      pending_.pop_front();
      visit(next);
    }
    return std::move(found_);
  }
  /// Of run(): a hash of the path of each entry.
  std::vector<std::uint64_t> takeNames() { return std::move(names_); }

 private:
  struct Pending {
    std::string path;
    bool stayed = true;  ///< no directory was moved in its directory, nor on the way to it
  };

  void visit(const Pending& at) {
    if (at.path.size() > kMaxDirectoryPath) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    Fd directory(static_cast<int>(isolation::openBeneath(root_.descriptor(), at.path.c_str(), kFlags)));
    struct stat status{};
    if (!directory || ::fstat(directory.get(), &status) != 0) return;
    if (at.path.empty()) device_ = status.st_dev;
    if (status.st_dev != device_) return;
    const sys::FileInfo info = fileInfoOf(status);
    const bool settled = !isLater(info, settled_ - 1, precise_);
    // One that changed itself is still the same if no name in its directory changed. The root is known by its identity.
    if (settled || at.stayed) {
      found_.emplace_back(at.path, WalkedDirectory{info.inode, info.changed_ns, info.mode, settled});
    }
    listBelow(std::move(directory), at.path, settled);
  }

  void listBelow(Fd directory, const std::string& path, bool stayed) {
    DIR* stream = ::fdopendir(directory.get());
    if (stream == nullptr) return;
    (void)directory.release();
    const std::uint64_t above = path.empty() ? kNoPath : hashOf("/", hashOf(path, kNoPath));
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || ++listed_ > kMaxDirectoryEntries) continue;
      names_.push_back(hashOf(name, above));
      if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) pending_.push_back({join(path, name), stayed});
    }
    ::closedir(stream);
  }

  const sys::RootDir& root_;
  const std::uint64_t precise_;
  const std::int64_t settled_;
  WalkedDirectories found_;
  std::vector<std::uint64_t> names_;
  dev_t device_ = 0;
  std::size_t listed_ = 0, walked_ = 0;
  std::deque<Pending> pending_;
};

/// Removes what a second walk does not find the same, with everything below: while the first walk was under way, a
/// program of the host may have moved a directory on the way, and even back.
void keepConfirmed(WalkedDirectories& found, const WalkedDirectories& again) {
  const std::unordered_map<std::string, WalkedDirectory> second(again.begin(), again.end());
  const auto is_same = [&](const auto& one) {
    const auto same = second.find(one.first);
    return same != second.end() && same->second == one.second;
  };
  std::unordered_set<std::string> stayed{""};  // the workspace itself is known by its identity
  if (!found.empty() && found.front().first.empty() && !is_same(found.front())) found.front().second.settled = false;
  std::erase_if(found, [&](const auto& one) {
    if (one.first.empty()) return false;
    if (!stayed.contains(directoryOf(one.first)) || !is_same(one)) return true;
    stayed.insert(one.first);
    return false;
  });
}

std::string textOf(const WalkedDirectories& found, const Moment& began) {
  std::string text = directoriesHeader(began);
  for (const auto& [path, one] : found) {
    text += std::to_string(one.inode) + " " + std::to_string(one.settled ? one.changed_ns : 0) + " " +
            std::to_string(one.mode) + " " + path;
    text += '\0';
  }
  return text;
}

std::string textOf(std::vector<std::uint64_t> names, const Moment& began) {
  std::ranges::sort(names);
  std::string text = namesHeader(began);
  text.append(reinterpret_cast<const char*>(names.data()), names.size() * sizeof(names[0]));
  return text;
}

std::vector<std::uint64_t> readNames(const sys::RootDir& session, const Moment& began) {
  const auto text = session.readFile(kNamesFile, kMaxBaselineBytes);
  const std::string header = namesHeader(began);
  if (!text || !text->starts_with(header)) return {};
  std::vector<std::uint64_t> names((text->size() - header.size()) / sizeof(std::uint64_t));
  if (!names.empty()) std::memcpy(names.data(), text->data() + header.size(), names.size() * sizeof(names[0]));
  // After a crash of the machine the end may be zeros.
  return std::ranges::is_sorted(names) ? names : std::vector<std::uint64_t>{};
}

/// Reads a number and the space after it.
template <class T>
bool takeNumber(std::string_view& line, T& value) {
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (problem != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

void recordDirectories(const sys::RootDir& session, const Metadata& metadata, CommandsRun commands) {
  if (metadata.workspace.empty()) return;
  const auto root = openRealDirectory(metadata);
  if (!root) return;
  DirectoryWalk walk(*root, metadata.began);
  WalkedDirectories found = walk.run();
  step("create: directories walked");
  if (commands == CommandsRun::perhaps) keepConfirmed(found, DirectoryWalk(*root, metadata.began).run());
  (void)session.replaceFile(kDirectoriesFile, textOf(found, metadata.began), 0600);
  (void)session.replaceFile(kNamesFile, textOf(walk.takeNames(), metadata.began), 0600);
}

void copyDirectories(const sys::RootDir& from, const sys::RootDir& to) {
  for (const char* file : {kDirectoriesFile, kNamesFile}) {
    if (const auto text = from.readFile(file, kMaxBaselineBytes)) (void)to.replaceFile(file, *text, 0600);
  }
}

DirectoryBaseline DirectoryBaseline::load(const sys::RootDir& session, const Metadata& metadata) {
  const Moment& began = metadata.began;
  DirectoryBaseline baseline;
  baseline.is_of_workspace_ = metadata.isFirstDirectory();
  baseline.names_ = readNames(session, began);
  const auto text = session.readFile(kDirectoriesFile, kMaxBaselineBytes);
  const std::string header = directoriesHeader(began);
  if (!text || !text->starts_with(header)) return baseline;
  std::string_view rest = std::string_view(*text).substr(header.size());
  // After a crash of the machine the end may be missing; a record is complete with its NUL.
  for (std::size_t end = rest.find('\0'); end != std::string_view::npos; end = rest.find('\0')) {
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    Directory directory;
    if (!takeNumber(line, directory.inode) || !takeNumber(line, directory.changed_ns)) continue;
    if (takeNumber(line, directory.mode)) baseline.directories_.emplace(line, directory);
  }
  return baseline;
}

bool DirectoryBaseline::hasName(const std::string& path) const {
  return std::ranges::binary_search(names_, hashOf(path, kNoPath));
}

const DirectoryBaseline::Directory* DirectoryBaseline::find(const std::string& path) const {
  const auto found = directories_.find(path);
  return found == directories_.end() ? nullptr : &found->second;
}

}  // namespace caisson::session
