#include "session/commit/directory_baseline.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "session/commit/real_tree.h"
#include "session/store/workspace_root.h"

namespace caisson::session {
namespace {

using sys::Fd;
using Clock = std::chrono::steady_clock;

constexpr const char* kDirectoriesFile = "directories";
constexpr std::size_t kMaxDirectoryEntries = 200'000;
constexpr std::size_t kMaxPathBytes = 3800;
constexpr std::uint64_t kMaxBaselineBytes = 256U << 20;
constexpr auto kMaxWalkTime = std::chrono::milliseconds(100);
/// File times have the precision of the kernel's tick: a change that is dated this shortly before the session's
/// beginning may have come after it.
constexpr std::int64_t kTick = 10'000'000;

std::string directoriesHeader(const Moment& began) {
  return "caisson directories 1 " + std::to_string(began.wall_ns) + "\n";
}

/// One walk over the real workspace. Follows no link and enters no other file system.
class DirectoryWalk {
 public:
  DirectoryWalk(const sys::RootDir& root, const Moment& began)
      : root_(root), settled_(began.wall_ns - kTick), text_(directoriesHeader(began)) {}

  std::string run() {
    const auto deadline = Clock::now() + kMaxWalkTime;
    pending_.push_back({"", true});
    while (!pending_.empty() && listed_ < kMaxDirectoryEntries && Clock::now() < deadline) {
      const Pending next = std::move(pending_.front());
      pending_.pop_front();
      visit(next);
    }
    return std::move(text_);
  }

 private:
  struct Pending {
    std::string path;
    bool stayed = true;  ///< no directory was moved in its directory, nor on the way to it
  };

  void visit(const Pending& at) {
    if (at.path.size() > kMaxPathBytes) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
    Fd directory(static_cast<int>(isolation::openBeneath(root_.descriptor(), at.path.c_str(), kFlags)));
    struct stat status{};
    if (!directory || ::fstat(directory.get(), &status) != 0) return;
    if (at.path.empty()) device_ = status.st_dev;
    if (status.st_dev != device_) return;
    const sys::FileInfo info = fileInfoOf(status);
    const bool settled = info.changed_ns < settled_;
    // One that changed itself is still the same if no name in its directory changed. The root has no such directory.
    if (!settled && (at.path.empty() || !at.stayed)) return listBelow(std::move(directory), at.path, false);
    text_ += std::to_string(info.inode) + " " + std::to_string(settled ? info.changed_ns : 0) + " " +
             std::to_string(info.mode) + " " + at.path;
    text_ += '\0';
    listBelow(std::move(directory), at.path, settled);
  }

  void listBelow(Fd directory, const std::string& path, bool stayed) {
    DIR* stream = ::fdopendir(directory.get());
    if (stream == nullptr) return;
    (void)directory.release();
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == ".." || ++listed_ > kMaxDirectoryEntries) continue;
      if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) pending_.push_back({join(path, name), stayed});
    }
    ::closedir(stream);
  }

  const sys::RootDir& root_;
  const std::int64_t settled_;
  std::string text_;
  dev_t device_ = 0;
  std::size_t listed_ = 0;
  std::deque<Pending> pending_;
};

/// Reads a number and the space after it.
template <class T>
bool takeNumber(std::string_view& line, T& value) {
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (problem != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

void recordDirectories(const sys::RootDir& session, const Metadata& metadata) {
  if (metadata.workspace.empty()) return;
  const auto root = openRealDirectory(metadata);
  if (root) (void)session.replaceFile(kDirectoriesFile, DirectoryWalk(*root, metadata.began).run(), 0600);
}

void copyDirectories(const sys::RootDir& from, const sys::RootDir& to) {
  if (const auto text = from.readFile(kDirectoriesFile, kMaxBaselineBytes)) {
    (void)to.replaceFile(kDirectoriesFile, *text, 0600);
  }
}

DirectoryBaseline DirectoryBaseline::load(const sys::RootDir& session, const Moment& began) {
  DirectoryBaseline baseline;
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

const DirectoryBaseline::Directory* DirectoryBaseline::find(const std::string& path) const {
  const auto found = directories_.find(path);
  return found == directories_.end() ? nullptr : &found->second;
}

}  // namespace caisson::session
