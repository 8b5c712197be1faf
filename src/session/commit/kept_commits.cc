#include "session/commit/kept_commits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>

#include "base/version.h"
#include "session/commit/kept_copy.h"
#include "session/commit/seal.h"
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
constexpr const char* kBytes = "bytes";
constexpr std::string_view kRecordName = "caisson commit record ";
constexpr std::string_view kRecordLine = "caisson commit record 2\n";
constexpr std::uint64_t kMaxRecordBytes = 1U << 30;
/// A commit that is not complete after this long was interrupted, and its session is gone.
constexpr std::int64_t kDay = 86'400;

Error keptError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error, "what a commit replaces is kept below CAISSON_HOME");
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
  const std::string name = session + "/" + std::to_string(numbers.empty() ? 1 : numbers.back() + 1);
  if (auto made = replaced->makeDirs(name + "/" + kObjects, 0700); !made) return fail(made.error());
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

bool KeptCommit::isUndone() const { return directory_.stat(kUndone).has_value(); }

Result<void> markUndone(const RootDir& directory) { return directory.writeFileAtomic(kUndone, "", 0600); }

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

Result<void> KeptCommit::take(std::size_t action, int directory, const std::string& name,
                              const std::string& path) const {
  const std::string as = std::to_string(action);
  if (::renameat2(directory, name.c_str(), objects_.get(), as.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == ENOENT) return fail(keptError("rename", path, ENOENT));
  return copy(action, directory, name, path);
}

Result<void> KeptCommit::copy(std::size_t action, int directory, const std::string& name,
                              const std::string& path) const {
  // Complete or not there: an interrupted commit asks has() again.
  const std::string partial = std::to_string(action) + ".part";
  if (auto removed = sys::removeTreeAt(objects_.get(), partial, path, Stage::state); !removed) return removed;
  if (auto copied = copyForKeeping(directory, name, objects_.get(), partial, path); !copied) {
    (void)sys::removeTreeAt(objects_.get(), partial, path, Stage::state);
    Error error = copied.error();
    error.hint = "what a commit replaces is kept below CAISSON_HOME: make room there, or use --discard";
    return fail(std::move(error));
  }
  const std::string as = std::to_string(action);
  if (::renameat(objects_.get(), partial.c_str(), objects_.get(), as.c_str()) == 0) return {};
  return fail(keptError("rename", path, errno));
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

Result<std::vector<ReplacedByCommit>> listKept(const SessionPaths& paths, const std::string& session) {
  const auto replaced = paths.replaced();
  if (!replaced) return fail(replaced.error());
  std::vector<ReplacedByCommit> found;
  for (const std::uint32_t number : numbersIn(*replaced, session)) {
    const auto kept = KeptCommit::open(paths, session + "/" + std::to_string(number));
    const auto record = kept ? kept->record() : Result<std::optional<CommitRecord>>(fail(kept.error()));
    if (!record && kept && !isOtherVersion(record.error())) return fail(record.error());
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
                     .undone = kept->isUndone()});
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
