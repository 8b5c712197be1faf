#include "supervise/disk/caches.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <utility>

#include "sys/descriptor_path.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::FileType;
using sys::RootDir;

constexpr const char* kData = "data";
constexpr const char* kOldData = "old";
constexpr const char* kSize = "size";
constexpr const char* kRemoved = ".removed-";

Result<RootDir> openCaches() {
  const std::string path = sys::stateHome() + "/caches";
  if (auto made = sys::makePrivatePath(path); !made) return fail(made.error());
  return RootDir::open(path);
}

/// One name for a path inside the sandbox.
std::string nameOfTarget(const std::string& target) {
  std::string name;
  for (const char letter : target.substr(1)) {
    if (letter == '/') {
      name += '%';
    } else if (letter == '%') {
      name += "%25";
    } else {
      name += letter;
    }
  }
  return name;
}

std::uint64_t notedSize(const RootDir& cache) {
  const auto text = cache.readFile(kSize, 32);
  std::uint64_t bytes = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), bytes);
  return bytes;
}

/// Locks are on the directory above the data, which no payload can open.
Result<Fd> openLock(const RootDir& cache) {
  return cache.openFile("", {.flags = O_RDONLY, .types = {FileType::directory}});
}

Result<CacheDirectory> tryOpen(const plan::MountTmpfs& step) {
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const std::string name = step.cache + "/" + nameOfTarget(step.target);
  if (auto made = caches->makeDirs(name, 0700); !made) return fail(made.error());
  auto cache = caches->enter(name);
  if (!cache) return fail(cache.error());
  auto lock = openLock(*cache);
  if (!lock) return fail(lock.error());
  if (notedSize(*cache) > step.bytes / 10 * 9 && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) {
    if (cache->rename(kData, kOldData, false)) (void)cache->remove(kSize);
  }
  // Waits only for another caisson that renames a directory.
  if (::flock(lock->get(), LOCK_SH) != 0) return fail(sysError(Stage::state, "flock", name, errno));
  struct stat locked{};
  const auto now = caches->stat(name);
  if (::fstat(lock->get(), &locked) != 0 || !now || now->inode != locked.st_ino)
    return fail(sysError(Stage::state, "open", name, ENOENT));  // `caisson clean` removed it meanwhile
  ::futimens(lock->get(), nullptr);                             // used now, see removeCaches()
  (void)cache->removeTree(kOldData);
  if (auto made = cache->makeDirs(kData, 0700); !made) return fail(made.error());
  if (auto opened = cache->openToOwner(kData); !opened) return fail(opened.error());  // a payload may have closed it
  auto data = cache->openFile(kData, {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!data) return fail(data.error());
  if (::fchmod(data->get(), 0700) != 0) return fail(sysError(Stage::state, "fchmod", name, errno));
  auto path = sys::canonicalPath(data->get());
  if (!path) return fail(path.error());
  return CacheDirectory{std::move(*path), std::move(*data), std::move(*lock)};
}

/// Removes one, unless a sandbox uses it or used it a short time ago.
bool removeUnused(const RootDir& key, const std::string& name, std::chrono::seconds unused) {
  if (name.starts_with(kRemoved)) return key.removeTree(name).has_value();  // a clean-up was interrupted
  auto cache = key.enter(name);
  auto lock = cache ? openLock(*cache) : fail(cache.error());
  struct stat status{};
  if (!lock || ::fstat(lock->get(), &status) != 0) return false;
  if (std::time(nullptr) - status.st_mtime < unused.count()) return false;
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return false;
  const std::string removed = kRemoved + name;
  if (!key.rename(name, removed, false)) return false;
  lock->reset();  // who waits for it finds another directory
  return key.removeTree(removed).has_value();
}

}  // namespace

Result<CacheDirectory> openCache(const plan::MountTmpfs& step) {
  constexpr int kTries = 3;
  auto opened = tryOpen(step);
  // `caisson clean` may remove it in the middle.
  for (int i = 1; i < kTries && !opened && opened.error().sys_errno == ENOENT; ++i) opened = tryOpen(step);
  return opened;
}

void noteCacheSize(const plan::MountTmpfs& step, std::uint64_t bytes) {
  auto caches = openCaches();
  if (!caches) return;
  auto cache = caches->enter(step.cache + "/" + nameOfTarget(step.target));
  if (!cache) return;
  const std::string text = std::to_string(bytes);
  const auto file = cache->openFile(kSize, {.flags = O_WRONLY | O_CREAT | O_TRUNC, .mode = 0600});
  if (file) (void)!::write(file->get(), text.data(), text.size());
}

Result<std::vector<std::string>> removeCaches(std::chrono::seconds unused) {
  std::vector<std::string> removed;
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const auto keys = caches->list("");
  if (!keys) return fail(keys.error());
  for (const auto& entry : *keys) {
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

}  // namespace caisson::supervise
