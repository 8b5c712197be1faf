#include "session/commit/kept_commits.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "base/version.h"
#include "session/commit/seal.h"
#include "session/commit/set_aside.h"
#include "session/store/ttl.h"
#include "supervise/disk/set_aside_size.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr const char* kObjects = "objects";
constexpr const char* kRecord = "record";
constexpr const char* kUndone = "undone";
constexpr const char* kPartial = "partial";
constexpr const char* kRestored = "restored";
constexpr const char* kBytes = "bytes";
const std::string kOriginal = "original.";
constexpr std::string_view kRecordName = "caisson commit record ";
constexpr std::string_view kRecordLine = "caisson commit record 4\n";
constexpr std::uint64_t kMaxRecordBytes = 1U << 30;
/// A commit that is not complete after this long was interrupted, and its session is gone.
constexpr std::int64_t kDay = 86'400;

Error keptError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error, "what a commit replaces is kept below CAISSON_HOME");
}

/// Everything below a directory; nothing below another object.
std::map<std::string, HostIdentity> identitiesBelow(int directory, const std::string& name) {
  std::map<std::string, HostIdentity> found;
  const auto root = RootDir::adopt(Fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), {});
  std::vector<std::string> pending{""};
  while (root && !pending.empty()) {
    const std::string below = std::move(pending.back());
    pending.pop_back();
    const auto top = root->stat(name + below);
    const auto entries = top && top->type == sys::FileType::directory
                             ? root->list(name + below)
                             : Result<std::vector<sys::DirectoryEntry>>(std::vector<sys::DirectoryEntry>{});
    for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
      std::string path = below + "/" + entry.name;
      const auto info = root->stat(name + path);
      if (!info) continue;
      found.emplace(path, HostIdentity::of(*info));
      if (info->type == sys::FileType::directory) pending.push_back(std::move(path));
    }
  }
  return found;
}

/// Whether the directory still has a name.
bool isLinked(const RootDir& directory) {
  struct stat status;
  return ::fstat(directory.descriptor(), &status) == 0 && status.st_nlink > 0;
}

std::uint32_t numberOf(std::string_view name) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  return problem == std::errc() && end == name.data() + name.size() ? number : 0;
}

std::vector<std::uint32_t> numbersIn(const RootDir& replaced, const std::string& session) {
  std::vector<std::uint32_t> numbers;
  const auto entries = replaced.list(session);
  if (!entries) return numbers;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (const std::uint32_t number = numberOf(entry.name); number != 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

Result<KeptCommit> KeptCommit::create(const SessionPaths& paths, const std::string& session, std::uint64_t bytes) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  const auto numbers = numbersIn(*replaced, session);
  return make(paths, session + "/" + std::to_string(numbers.empty() ? 1 : numbers.back() + 1), bytes);
}

Result<KeptCommit> KeptCommit::make(const SessionPaths& paths, const std::string& name, std::uint64_t bytes) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  // A process that lists sessions removes the directory of this one for as long as it is empty.
  auto directories = replaced->makeDirs(name + "/" + kObjects, 0700);
  while (!directories && directories.error().sys_errno == ENOENT && isLinked(*replaced)) {
    directories = replaced->makeDirs(name + "/" + kObjects, 0700);
  }
  if (!directories) return fail(directories.error());
  auto made = open(paths, name);
  if (!made) return made;
  // Counted from now on, so that two commits at a time do not both fit, nor one that is never finished.
  if (auto sized = made->directory_.replaceFile(kBytes, std::to_string(bytes), 0600); !sized)
    return fail(sized.error());
  return made;
}

Result<KeptCommit> KeptCommit::open(const SessionPaths& paths, const std::string& name) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  auto directory = replaced->enter(name);
  if (!directory) return fail(directory.error());
  Fd objects(::openat(directory->descriptor(), kObjects, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!objects) return fail(keptError("open", name, errno));
  return KeptCommit(name, *std::move(directory), std::move(objects));
}

Result<KeptCommit> KeptCommit::openUnfinished(const SessionPaths& paths, const std::string& session) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  const auto numbers = numbersIn(*replaced, session);
  auto newest = numbers.empty() ? Result<KeptCommit>(fail(keptError("open", session, ENOENT)))
                                : open(paths, session + "/" + std::to_string(numbers.back()));
  if (!newest) return newest;
  const RootDir& directory = newest->directory();
  if (directory.stat(kRecord) || newest->isUndone() || directory.stat(kStagingName)) {
    return fail(keptError("open", session, ENOENT));
  }
  return newest;
}

Result<Fd> lockDirectory(const RootDir& directory, std::string_view hint) {
  constexpr int kTries = 500;
  constexpr unsigned kPauseUs = 10'000;
  Fd turn(::openat(directory.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int locked = -1;
  for (int tries = 0; turn && tries < kTries; ++tries) {
    locked = ::flock(turn.get(), LOCK_EX | LOCK_NB);
    if (locked == 0 || errno != EWOULDBLOCK) break;
    ::usleep(kPauseUs);
  }
  if (locked == 0) return turn;
  return fail(sysError(Stage::state, "flock", directory.knownAs(), errno, std::string(hint)));
}

Result<Fd> lockKept(const SessionPaths& paths, const std::string& session) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  for (;;) {
    const auto directory = replaced->enter(session);
    if (!directory && directory.error().sys_errno == ENOENT) return Fd();
    if (!directory) return fail(directory.error());
    auto turn = lockDirectory(*directory, "another process undoes a commit of the session; try again");
    if (!turn) return turn;
    const auto now = replaced->stat(session);
    struct stat locked{};
    if (now && ::fstat(turn->get(), &locked) == 0 && now->inode == locked.st_ino) return turn;
    // It was removed with what was too old, and perhaps made again.
  }
}

bool KeptCommit::isUndone() const { return directory_.stat(kUndone).has_value(); }

Result<void> markUndone(const RootDir& directory) { return directory.writeFileAtomic(kUndone, "", 0600); }

bool isPartial(const RootDir& directory) { return directory.stat(kPartial).has_value(); }

Result<void> markPartial(const RootDir& directory, bool partial) {
  return partial ? directory.writeFileAtomic(kPartial, "", 0600) : directory.remove(kPartial);
}

Result<std::set<std::string>> restoredPaths(const RootDir& directory) {
  const auto text = directory.readFile(kRestored, kMaxRecordBytes);
  std::set<std::string> paths;
  if (!text && text.error().sys_errno == ENOENT) return paths;
  if (!text) return fail(text.error());
  for (std::size_t begin = 0, end = 0; (end = text->find('\0', begin)) != std::string::npos; begin = end + 1) {
    paths.insert(text->substr(begin, end - begin));
  }
  return paths;
}

Result<void> addRestored(const RootDir& directory, const std::vector<std::string>& paths) {
  auto all = restoredPaths(directory);
  if (!all) return fail(all.error());
  all->insert(paths.begin(), paths.end());
  std::string text;
  for (const std::string& path : *all) (text += path) += '\0';
  return directory.writeFileAtomic(kRestored, text, 0600);
}

bool KeptCommit::has(std::size_t action) const {
  struct stat status;
  return ::fstatat(objects_.get(), std::to_string(action).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool KeptCommit::isEmpty() const {
  const auto objects = directory_.list(kObjects, 1);
  return objects && objects->empty();
}

void KeptCommit::removeIfEmpty(const SessionPaths& paths) const {
  const auto replaced = paths.replaced();
  if (replaced && isEmpty() && !directory_.stat(kRecord)) (void)replaced->removeTree(name_);
}

Result<void> KeptCommit::take(std::size_t action, int directory, const std::string& name, const std::string& path,
                              CopiedFiles& files) const {
  const std::string as = std::to_string(action);
  if (::renameat2(directory, name.c_str(), objects_.get(), as.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == ENOENT) return fail(keptError("rename", path, ENOENT));
  return copy(action, directory, name, path, &files);
}

Result<void> KeptCommit::copy(std::size_t action, int directory, const std::string& name, const std::string& path,
                              CopiedFiles* files) const {
  // Complete or not there: an interrupted commit asks has() again.
  const std::string partial = std::to_string(action) + ".part";
  if (auto removed = sys::removeTreeAt(objects_.get(), partial, path, Stage::state); !removed) return removed;
  if (auto copied = copyForKeeping(directory, name, objects_.get(), partial, path, files); !copied) {
    (void)sys::removeTreeAt(objects_.get(), partial, path, Stage::state);
    Error error = copied.error();
    error.hint = "what a commit replaces is kept below CAISSON_HOME: make room there, or use --discard";
    return fail(std::move(error));
  }
  if (const auto below = identitiesBelow(directory, name); !below.empty()) {
    // Without it an older commit cannot be undone after this one.
    (void)directory_.replaceFile(kOriginal + std::to_string(action), codec::encode(below), 0600);
  }
  const std::string as = std::to_string(action);
  if (::renameat(objects_.get(), partial.c_str(), objects_.get(), as.c_str()) == 0) return {};
  return fail(keptError("rename", path, errno));
}

std::map<std::string, HostIdentity> KeptCommit::originals(std::size_t action) const {
  const auto text = directory_.readFile(kOriginal + std::to_string(action), kMaxRecordBytes);
  auto found = text ? codec::decode<std::map<std::string, HostIdentity>>(*text) : std::nullopt;
  return found ? *std::move(found) : std::map<std::string, HostIdentity>{};
}

void KeptCommit::drop(std::size_t action) const {
  (void)sys::removeTreeAt(objects_.get(), std::to_string(action), name_, Stage::state);
}

Result<void> KeptCommit::complete(const CommitRecord& record, Committed& left) const {
  if (auto saved = left.save(); !saved) return saved;
  const std::string body = codec::encode(record, codec::Layout::fixed);
  const auto text = sealed(kRecordLine, body);
  if (!text) return fail(text.error());
  if (auto sized = directory_.replaceFile(kBytes, std::to_string(record.bytes), 0600); !sized) return sized;
  return directory_.replaceFile(kRecord, *text, 0600);
}

Result<std::optional<CommitRecord>> KeptCommit::record() const {
  const auto text = directory_.readFile(kRecord, kMaxRecordBytes);
  if (!text && text.error().sys_errno == ENOENT) return std::nullopt;
  if (!text) return fail(text.error());
  constexpr std::string_view kHint = "the files are in the directory `replaced` of CAISSON_HOME";
  const std::string_view format = std::string_view(*text).substr(0, kRecordLine.size());
  if (format.starts_with(kRecordName) && format != kRecordLine) {
    return fail(otherVersionError("session uncommit", name_,
                                  "the record of the commit is of another version of caisson", kHint));
  }
  const auto body = unsealed(kRecordLine, *text);
  if (!body) return fail(body.error());
  auto record = *body ? codec::decode<CommitRecord>(**body, codec::Layout::fixed) : std::nullopt;
  if (!record || record->done.size() != record->transaction.actions.size())
    return fail(keepAside(directory_, kRecord, "session uncommit", kHint));
  return std::move(*record);
}

namespace {

/// Of a commit that was set aside. Its directory changed last when that was done.
ReplacedByCommit describeSetAside(const RootDir& directory, std::uint32_t number) {
  ReplacedByCommit found{.number = number, .interrupted = true, .location = objectsOfSetAside(directory)};
  if (const auto info = directory.stat(kBytes)) found.time = info->changed_ns / 1'000'000'000;
  for (const char* place : {kObjects, kStagingDirectory}) {
    if (const auto objects = directory.list(place)) found.objects += objects->size();
  }
  if (const auto text = directory.readFile(kBytes, 32)) {
    std::from_chars(text->data(), text->data() + text->size(), found.bytes);
  }
  const std::int64_t age = std::time(nullptr) - found.time;
  found.removed_in = std::max(0.0, static_cast<double>(kSessionGraceSeconds) - static_cast<double>(age));
  return found;
}

}  // namespace

Result<std::vector<ReplacedByCommit>> listKept(const SessionPaths& paths, const std::string& session) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  std::vector<ReplacedByCommit> found;
  for (const std::uint32_t number : numbersIn(*replaced, session)) {
    const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(number));
    const auto record = kept ? kept->record() : Result<std::optional<CommitRecord>>(fail(kept.error()));
    if (!record && kept && !isOtherVersion(record.error())) return fail(record.error());
    if (kept && record && !*record && isSetAside(kept->directory())) {
      found.push_back(describeSetAside(kept->directory(), number));
    }
    if (!record || !*record) continue;
    const std::int64_t age = std::time(nullptr) - (*record)->time;
    std::size_t objects = 0;
    for (std::size_t index = 0; index < (*record)->done.size(); ++index) objects += kept->has(index) ? 1 : 0;
    found.push_back({.number = number,
                     .time = (*record)->time,
                     .changes = static_cast<std::size_t>(std::ranges::count((*record)->done, 1)),
                     .objects = objects,
                     .bytes = (*record)->bytes,
                     .removed_in = std::max(0.0, static_cast<double>(kSessionGraceSeconds) - static_cast<double>(age)),
                     .undone = kept->isUndone(),
                     .interrupted = false,
                     .location = {}});
  }
  return found;
}

KeptData keptData(const SessionPaths& paths) {
  KeptData data{.quarantined = supervise::quarantinedBytes(), .evidence = supervise::evidenceBytes()};
  const auto replaced = paths.replaced();
  const auto sessions =
      replaced ? replaced->list("") : Result<std::vector<sys::DirectoryEntry>>(fail(replaced.error()));
  if (!sessions) return data;
  for (const sys::DirectoryEntry& session : *sessions) {
    for (const std::uint32_t number : numbersIn(*replaced, session.name)) {
      const auto text = replaced->readFile(session.name + "/" + std::to_string(number) + "/" + kBytes, 32);
      std::uint64_t size = 0;
      if (text) std::from_chars(text->data(), text->data() + text->size(), size);
      data.commits += size;
    }
  }
  return data;
}

void removeExpiredKept(const SessionPaths& paths) {
  const auto replaced = paths.replaced();
  const auto sessions =
      replaced ? replaced->list("") : Result<std::vector<sys::DirectoryEntry>>(fail(replaced.error()));
  if (!sessions) return;
  const std::int64_t now = std::time(nullptr);
  for (const sys::DirectoryEntry& session : *sessions) {
    for (const std::uint32_t number : numbersIn(*replaced, session.name)) {
      const std::string name = session.name + "/" + std::to_string(number);
      const auto info = replaced->stat(name);
      // An unfinished uncommit, or a commit that its session still has to finish, changes the directory.
      const std::int64_t age = info ? now - info->changed_ns / 1'000'000'000 : 0;
      if (age > static_cast<std::int64_t>(kSessionGraceSeconds) + kDay) (void)replaced->removeTree(name);
    }
    (void)::unlinkat(replaced->descriptor(), session.name.c_str(), AT_REMOVEDIR);  // fails if it is not empty
  }
}

}  // namespace caisson::session
