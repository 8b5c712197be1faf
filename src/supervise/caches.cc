#include "supervise/caches.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <utility>

#include "supervise/path_names.h"
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

/// Leftovers of an emptying that was interrupted go as well.
void empty(const RootDir& cache) {
  (void)cache.removeTree(kOldData);
  if (auto renamed = cache.rename(kData, kOldData, false); !renamed) return;
  (void)cache.remove(kSize);
  (void)cache.removeTree(kOldData);
}

/// Opens `kData`, made if missing, with a lock of this kind. No descriptor if others use it.
Result<Fd> lockData(const RootDir& cache, int lock) {
  for (;;) {
    if (auto made = cache.makeDirs(kData, 0700); !made) return fail(made.error());
    (void)cache.openToOwner(kData);  // a payload may have closed it
    auto data = cache.openFile(kData, {.flags = O_RDONLY, .types = {FileType::directory}});
    if (!data) return fail(data.error());
    if (::flock(data->get(), lock | LOCK_NB) != 0) {
      if ((lock & LOCK_EX) != 0) return Fd();
      continue;  // it is being emptied: the next one is new
    }
    struct stat locked{};
    const auto now = cache.stat(kData);
    if (::fstat(data->get(), &locked) == 0 && now && now->inode == locked.st_ino) return std::move(*data);
  }
}

}  // namespace

namespace {

Result<CacheDirectory> tryOpen(const plan::MountTmpfs& step) {
  auto caches = openCaches();
  if (!caches) return fail(caches.error());
  const std::string name = step.cache + "/" + nameOfTarget(step.target);
  if (auto made = caches->makeDirs(name, 0700); !made) return fail(made.error());
  auto cache = caches->enter(name);
  if (!cache) return fail(cache.error());
  if (notedSize(*cache) > step.bytes / 10 * 9) {
    auto alone = lockData(*cache, LOCK_EX);
    if (alone && alone->valid()) empty(*cache);
  }
  auto data = lockData(*cache, LOCK_SH);
  if (!data) return fail(data.error());
  if (::fchmod(data->get(), 0700) != 0) return fail(sysError(Stage::state, "fchmod", name, errno));
  ::futimens(data->get(), nullptr);  // used now, see removeCaches()
  std::string path = canonicalName(data->get());
  if (path.empty()) return fail(sysError(Stage::state, "readlink", name, errno));
  return CacheDirectory{std::move(path), std::move(*data)};
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
  for (const auto& key : *keys) {
    const auto names = caches->list(key.name);
    if (!names) continue;
    bool all = true;
    for (const auto& name : *names) {
      const std::string path = key.name + "/" + name.name;
      auto cache = caches->enter(path);
      const auto data = cache ? cache->stat(kData) : fail(cache.error());
      const std::int64_t age = data ? std::time(nullptr) - data->modified_ns / 1'000'000'000 : unused.count();
      auto alone = cache && age >= unused.count() ? lockData(*cache, LOCK_EX) : Fd();
      const bool gone = alone && alone->valid() && caches->removeTree(path);
      all = all && gone;
      if (gone) removed.push_back(path);
    }
    if (all) (void)caches->removeTree(key.name);
  }
  return removed;
}

}  // namespace caisson::supervise
