#include "supervise/disk/caches.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <utility>

#include "supervise/disk/cache_configuration.h"
#include "supervise/disk/foreign_files.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::FileType;
using sys::RootDir;

constexpr const char* kData = "data";
constexpr const char* kOldData = "old";
constexpr const char* kEvidence = "evidence";
constexpr const char* kOldEvidence = "old-evidence";
constexpr const char* kSize = "size";
constexpr const char* kRemoved = ".removed-";

// `caisson clean` counts days without use, so the time of use is not written more often than this.
constexpr std::chrono::seconds kNoteUseAfter(600);

/// Since the last modification. The clock must not be one that moves in ticks, as time() does: file timestamps are
/// finer, and would be in its future.
std::chrono::seconds ageOf(const struct stat& status) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::chrono::seconds(now.tv_sec - status.st_mtime);
}

Result<RootDir> openCaches() {
  auto directory = sys::openStateDirectory("caches");
  if (!directory) return fail(directory.error());
  return RootDir::adopt(std::move(*directory), {.known_as = sys::stateHome() + "/caches"});
}

/// A different name for each path inside the sandbox, and none that begins like kRemoved.
std::string nameOfTarget(const std::string& target) {
  if (target == plan::kPrivateCache) return "cache";  // the same as in a sandbox with mounts, where it is /cache
  std::string name;
  for (const char letter : target.substr(1)) {
    if (letter == '/') {
      name += "%2f";
    } else if (letter == '%') {
      name += "%25";
    } else if (letter == '.' && name.empty()) {
      name += "%2e";
    } else {
      name += letter;
    }
  }
  return name;
}

/// The directory of one cache, which no payload can open: it holds the data, which sandboxes see, and what we note.
Result<RootDir> openOne(const RootDir& caches, const std::string& name) {
  auto cache = caches.enter(name);
  if (cache || cache.error().sys_errno != ENOENT) return cache;
  if (auto made = caches.makeDirs(name, 0700); !made) return fail(made.error());
  return caches.enter(name);
}

Fd openSize(const RootDir& cache, int flags) {
  return Fd(::openat(cache.descriptor(), kSize, flags | O_NOFOLLOW | O_CLOEXEC, 0600));
}

/// "bytes inodes"
CacheSize readSize(const Fd& file) {
  char text[64];
  const ssize_t length = file ? ::pread(file.get(), text, sizeof(text), 0) : 0;
  CacheSize size;
  if (length <= 0) return size;
  const char* end = text + length;
  const char* after = std::from_chars(text, end, size.bytes).ptr;
  if (after < end) std::from_chars(after + 1, end, size.inodes);
  return size;
}

bool isNearlyFull(const CacheSize& size, const plan::MountTmpfs& step) {
  return size.bytes > step.bytes / 10 * 9 || (step.inodes > 0 && size.inodes > step.inodes / 10 * 9);
}

/// Locks are on the directory above the data.
Result<Fd> openLock(const RootDir& cache) {
  Fd lock(::openat(cache.descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return fail(sysError(Stage::state, "open", cache.knownAs(), errno));
  return lock;
}

/// Opens the data. A payload may have changed its mode, or an interrupted clean-up removed it.
Result<Fd> openData(const RootDir& cache) {
  Fd data(::openat(cache.descriptor(), kData, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (data && ::fstat(data.get(), &status) == 0 && (status.st_mode & 07777) == 0700) return data;
  if (auto made = cache.makeDirs(kData, 0700); !made) return fail(made.error());
  if (auto opened = cache.openToOwner(kData); !opened) return fail(opened.error());
  auto again = cache.openFile(kData, {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!again) return fail(again.error());
  if (::fchmod(again->get(), 0700) != 0) return fail(sysError(Stage::state, "fchmod", kData, errno));
  return again;
}

/// Removes a directory that an earlier use set aside, if there is one.
void removeOld(const RootDir& cache, const char* name) {
  struct stat status{};
  if (::fstatat(cache.descriptor(), name, &status, AT_SYMLINK_NOFOLLOW) == 0) (void)removeForeignTree(cache, name);
}

/// Removes the data, for its next user. Sandboxes that use it keep what they have.
Result<void> discardData(const RootDir& cache) {
  removeOld(cache, kOldData);
  if (auto set_aside = cache.rename(kData, kOldData, false); !set_aside) return set_aside;
  (void)cache.remove(kSize);
  removeOld(cache, kOldData);
  return {};
}

/// Opens the data without configuration, or new data if that cannot be removed.
Result<Fd> openCleanData(const RootDir& cache) {
  auto data = openData(cache);
  if (!data || removeConfiguration(data->get())) return data;
  if (auto discarded = discardData(cache); !discarded) return fail(discarded.error());
  return openData(cache);
}

Result<CacheDirectory> tryOpen(const plan::MountTmpfs& step) {
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const std::string name = step.cache + "/" + nameOfTarget(step.target);
  auto cache = openOne(*caches, name);
  if (!cache) return fail(cache.error());
  auto lock = openLock(*cache);
  if (!lock) return fail(lock.error());
  if (isNearlyFull(readSize(openSize(*cache, O_RDONLY)), step) && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) {
    if (cache->rename(kData, kOldData, false)) (void)cache->remove(kSize);
  }
  // Waits only for another caisson that renames a directory.
  if (auto locked = sys::lockFile(lock->get(), sys::LockKind::shared, sys::kLockTimeout, cache->knownAs()); !locked)
    return fail(locked.error());
  struct stat locked{};
  const auto now = caches->stat(name);
  if (::fstat(lock->get(), &locked) != 0 || !now || now->inode != locked.st_ino)
    return fail(sysError(Stage::state, "open", name, ENOENT));          // `caisson clean` removed it meanwhile
  if (ageOf(locked) > kNoteUseAfter) ::futimens(lock->get(), nullptr);  // see removeCaches()
  removeOld(*cache, kOldData);
  removeOld(*cache, kOldEvidence);
  auto data = openCleanData(*cache);
  if (!data) return fail(data.error());
  auto path = sys::canonicalPath(data->get());
  if (!path) return fail(path.error());
  return CacheDirectory{std::move(*path), std::move(*data), std::move(*lock)};
}

/// Removes one, unless a sandbox uses it or used it a short time ago.
bool removeUnused(const RootDir& key, const std::string& name, std::chrono::seconds unused) {
  if (name.starts_with(kRemoved)) return removeForeignTree(key, name).has_value();  // a clean-up was interrupted
  auto cache = key.enter(name);
  auto lock = cache ? openLock(*cache) : fail(cache.error());
  struct stat status{};
  if (!lock || ::fstat(lock->get(), &status) != 0) return false;
  if (ageOf(status) < unused) return false;
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return false;
  const std::string removed = kRemoved + name;
  if (!key.rename(name, removed, false)) return false;
  lock->reset();  // who waits for it finds another directory
  return removeForeignTree(key, removed).has_value();
}

}  // namespace

Result<CacheDirectory> openCache(const plan::MountTmpfs& step) {
  constexpr int kTries = 3;
  auto opened = tryOpen(step);
  // `caisson clean` may remove it in the middle.
  for (int i = 1; i < kTries && !opened && opened.error().sys_errno == ENOENT; ++i) opened = tryOpen(step);
  return opened;
}

void noteCacheSize(const plan::MountTmpfs& step, const CacheSize& size) {
  auto caches = openCaches();
  if (!caches) return;
  auto cache = caches->enter(step.cache + "/" + nameOfTarget(step.target));
  if (!cache) return;
  const Fd file = openSize(*cache, O_RDWR | O_CREAT);
  if (!file || readSize(file) == size) return;
  const std::string text = std::to_string(size.bytes) + " " + std::to_string(size.inodes);
  if (::ftruncate(file.get(), 0) == 0) (void)!::pwrite(file.get(), text.data(), text.size(), 0);
}

void finishCache(const sys::Fd& lock) {
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  const Fd data(::openat(lock.get(), kData, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (data && !removeConfiguration(data.get())) {  // closed data is left to openCache()
    if (const auto cache = RootDir::share(lock.get(), {.known_as = "cache"})) (void)discardData(*cache);
  }
  (void)::flock(lock.get(), LOCK_SH);
}

Result<std::string> discardCache(const plan::MountTmpfs& step) {
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const std::string name = step.cache + "/" + nameOfTarget(step.target);
  auto cache = caches->enter(name);
  if (!cache) return fail(cache.error());
  const std::string path = caches->knownAs() + "/" + name + "/" + kEvidence;
  if (!cache->stat(kData) && cache->stat(kEvidence)) return path;  // several commands of a session were caught
  // The earlier one is removed last: the rename must not wait for a tree that a payload made large.
  const bool earlier = cache->rename(kEvidence, kOldEvidence, false).has_value();
  if (auto set_aside = cache->rename(kData, kEvidence, false); !set_aside) return fail(set_aside.error());
  (void)cache->remove(kSize);
  if (earlier) (void)removeForeignTree(*cache, kOldEvidence);
  return path;
}

Result<std::vector<std::string>> removeCaches(std::chrono::seconds unused) {
  std::vector<std::string> removed;
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const auto keys = caches->list("");
  if (!keys) return fail(keys.error());
  for (const auto& entry : *keys) {
    if (entry.name.starts_with(kRemoved)) (void)removeForeignTree(*caches, entry.name);  // removeCachesOf() was killed
    const auto key = caches->enter(entry.name);
    const auto names = key ? key->list("") : fail(key.error());
    if (!names) continue;
    for (const auto& name : *names) {
      if (removeUnused(*key, name.name, unused)) removed.push_back(entry.name + "/" + name.name);
    }
    (void)caches->remove(entry.name);  // if it is empty
  }
  return removed;
}

Result<void> removeCachesOf(std::string_view prefix) {
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const auto keys = caches->list("");
  if (!keys) return fail(keys.error());
  Result<void> result;
  for (const auto& entry : *keys) {
    if (!entry.name.starts_with(prefix)) continue;
    const std::string removed = kRemoved + entry.name;
    (void)removeForeignTree(*caches, removed);  // of an earlier one that was killed
    auto done = caches->rename(entry.name, removed, false);
    if (done) done = removeForeignTree(*caches, removed);
    if (!done && result) result = done;
  }
  return result;
}

}  // namespace caisson::supervise
