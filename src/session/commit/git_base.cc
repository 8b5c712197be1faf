#include "session/commit/git_base.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>

#include "policy/rules/git_index.h"
#include "session/changes/git_patch.h"
#include "session/store/workspace_root.h"
#include "sys/helper_process.h"
#include "sys/path_reader.h"

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kBasesFile = "git-bases";
constexpr const char* kRepository = "empty.git";
constexpr const char* kIndex = ".git/index";
constexpr std::uint64_t kMaxBasesBytes = 64U << 20;
constexpr std::size_t kMaxBases = 50'000;
constexpr auto kMaxTime = std::chrono::milliseconds(50);
constexpr auto kGitTimeout = std::chrono::seconds(10);
constexpr std::uint32_t kMaxBlobBytes = 16U << 20;
constexpr std::int64_t kSecond = 1'000'000'000;
/// File times have the precision of the kernel's tick: a change that is dated this shortly before the session's
/// beginning may have come after it.
constexpr std::int64_t kTickNs = 10'000'000;

/// Whether the file is what the index says: git's own test.
bool isClean(const policy::IndexEntry& entry, const sys::FileInfo& info, std::int64_t index_modified,
             std::int64_t began) {
  const auto same = [](std::int64_t time, std::uint32_t seconds, std::uint32_t nanoseconds) {
    return static_cast<std::uint32_t>(time / kSecond) == seconds &&
           static_cast<std::uint32_t>(time % kSecond) == nanoseconds;
  };
  return info.type == sys::FileType::regular && info.size == entry.size &&
         static_cast<std::uint32_t>(info.inode) == entry.inode &&
         same(info.modified_ns, entry.modified_s, entry.modified_ns) &&
         same(info.changed_ns, entry.changed_s, entry.changed_ns) &&
         info.modified_ns < index_modified &&  // else it may have changed once more within the same tick
         info.changed_ns < began - kTickNs;
}

std::string headerOf(const Moment& began) { return "caisson git bases 1 " + std::to_string(began.wall_ns) + "\n"; }

/// Reads a program's output to its end. Nothing if it exceeds `limit` bytes or the deadline.
std::optional<std::string> readAll(int from, std::size_t limit, Clock::time_point deadline) {
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{from, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[65536];
    const ssize_t got = ::read(from, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > limit) return std::nullopt;
  }
}

}  // namespace

void recordGitBases(const sys::RootDir& session, const Metadata& metadata) {
  if (metadata.workspace.empty()) return;
  const auto deadline = Clock::now() + kMaxTime;
  const auto root = openRealDirectory(metadata);
  if (!root) return;
  const auto index = root->stat(kIndex);
  if (!index || index->type != sys::FileType::regular) return;
  const auto bytes = root->readFile(kIndex, policy::kMaxIndexBytes);
  if (!bytes) return;
  sys::PathReader reader(*root);
  std::string text = headerOf(metadata.began);
  std::size_t looked_at = 0;
  for (const policy::IndexEntry& entry : policy::readIndex(*bytes)) {
    if (++looked_at > kMaxBases || Clock::now() >= deadline) break;
    const auto info = reader.stat(entry.path);
    if (!info || !isClean(entry, *info, index->modified_ns, metadata.began.wall_ns)) continue;
    text += entry.id + " " + std::to_string(entry.size) + " " + entry.path;
    text += '\0';
  }
  (void)session.replaceFile(kBasesFile, text, 0600);
}

void copyGitBases(const sys::RootDir& from, const sys::RootDir& to) {
  if (const auto text = from.readFile(kBasesFile, kMaxBasesBytes)) (void)to.replaceFile(kBasesFile, *text, 0600);
}

GitBases GitBases::load(const sys::RootDir& session, const Metadata& metadata, const sys::RootDir* real) {
  GitBases bases;
  const auto text = session.readFile(kBasesFile, kMaxBasesBytes);
  const std::string header = headerOf(metadata.began);
  if (!text || !text->starts_with(header)) return bases;
  std::string_view rest = std::string_view(*text).substr(header.size());
  constexpr std::size_t kIdDigits = 40;
  for (std::size_t end = rest.find('\0'); end != std::string_view::npos; end = rest.find('\0')) {
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    const std::size_t space = line.find(' ', kIdDigits + 1);
    Blob blob;
    if (space == std::string_view::npos) continue;
    blob.id = line.substr(0, kIdDigits);
    std::from_chars(line.data() + kIdDigits + 1, line.data() + space, blob.size);
    bases.blobs_.emplace(line.substr(space + 1), std::move(blob));
  }
  bases.session_ = &session;
  bases.real_ = real;
  return bases;
}

std::optional<std::string> GitBases::content(const std::string& path) const {
  const auto found = blobs_.find(path);
  if (found == blobs_.end() || found->second.size > kMaxBlobBytes || real_ == nullptr) return std::nullopt;
  const Blob& blob = found->second;
  // Git reads the configuration of the repository that it works in, which can name programs to run. So it works in an
  // empty one of ours and only takes the objects from the workspace's.
  const std::string repository = kRepository;
  if (!session_->makeDirs(repository + "/objects", 0700) || !session_->makeDirs(repository + "/refs", 0700) ||
      !session_->replaceFile(repository + "/HEAD", "ref: refs/heads/none\n", 0600)) {
    return std::nullopt;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const sys::Fd ours(ends[0]);
  sys::Fd theirs(ends[1]);
  auto git = sys::HelperProcess::start(
      {.path = "/bin/sh",
       .words = {"sh", "-c", "exec \"$@\" >&3 3>&-", "sh", "/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin",
                 "GIT_DIR=" + session_->knownAs() + "/" + repository,
                 "GIT_OBJECT_DIRECTORY=/proc/self/fd/4/.git/objects", "GIT_CONFIG_NOSYSTEM=1",
                 "GIT_CONFIG_GLOBAL=/dev/null", "GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
                 "GIT_TERMINAL_PROMPT=0", "HOME=/nonexistent", "git", "cat-file", "blob", blob.id},
       .descriptors = {theirs.get(), real_->descriptor()}});
  theirs.reset();
  if (!git) return std::nullopt;
  auto content = readAll(ours.get(), blob.size, Clock::now() + kGitTimeout);
  // `blob.size` is the file's size from the index. If a filter (line ends, LFS) changed it, the blob has another size
  // and is not what the file was.
  if (!content || content->size() != blob.size || blobId(*content) != blob.id) return std::nullopt;
  return content;
}

}  // namespace caisson::session
