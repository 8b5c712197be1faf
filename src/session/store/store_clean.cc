// Finds the sessions that have to go: expired ones without uncommitted changes, and what dead processes left.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/version.h"
#include "session/client/connection.h"
#include "session/commit/kept_commits.h"
#include "session/layers/layer_stack.h"
#include "session/store/rollback.h"
#include "session/store/store.h"
#include "session/store/store_files.h"
#include "session/store/unreadable.h"
#include "session/store/unused_stores.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr const char* kKept = "kept";  // expired with uncommitted changes
// How many entries and bytes of an expired session are compared to find uncommitted changes.
constexpr std::size_t kMaxLookedAt = 20'000;
constexpr std::uint64_t kMaxCompared = 64U << 20;
constexpr std::int64_t kCleanEverySeconds = 60;

/// Whether all layers of the session are empty: no command wrote to the workspace.
bool nothingWritten(const RootDir& store, const Metadata& metadata) {
  std::vector<std::string> layers = metadata.frozen;
  layers.push_back(metadata.upper);
  return std::all_of(layers.begin(), layers.end(), [&](const std::string& layer) {
    const auto entries = store.list(layer, 1);
    return entries ? entries->empty() : entries.error().sys_errno == ENOENT;
  });
}

}  // namespace

bool Store::hasUncommittedChanges(const Metadata& metadata) const {
  if (inLandlockTier(metadata.policy)) {
    if (writesDirectly(metadata)) return false;
  } else {
    const auto store = paths_.stores().enter(metadata.family);
    if (!store) return store.error().sys_errno != ENOENT;
    if (nothingWritten(*store, metadata)) return false;
  }
  auto roots = LayerRoots::open(paths_, metadata);
  if (!roots) return true;  // the real workspace is gone; this may be the only copy
  std::vector<std::string> current = metadata.frozen;
  current.insert(current.begin(), metadata.upper);
  const auto before = roots->stack({});
  const auto now = roots->stack(current);
  return !before || !now || differs(*before, *now, kMaxLookedAt, kMaxCompared);
}

bool Store::isKept(const RootDir& directory, const Metadata& metadata) const {
  if (metadata.pooled || metadata.secondsSinceEnd(Moment::now()) > kSessionGraceSeconds) return false;
  if (directory.stat(kKept)) return true;
  if (!hasUncommittedChanges(metadata)) return false;
  (void)directory.replaceFile(kKept, "", 0600);  // remember the result, since the check may take long
  return true;
}

void forgetKept(const RootDir& session) { (void)session.remove(kKept); }

Result<std::vector<std::string>> Store::clean(bool all) {
  removeAbandonedTierFiles();
  std::vector<std::string> removed;
  auto entries = paths_.sessions().list("");
  if (!entries) return fail(entries.error());
  const Moment now = Moment::now();
  std::optional<Error> first;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (isId(entry.name)) {
      auto directory = paths_.sessions().enter(entry.name);
      if (!directory) continue;
      const auto metadata = cache_->read(*directory);
      if (!metadata && isOtherVersion(metadata.error())) {
        // Its content is unknown and may be the only copy: only `session destroy` removes it.
        if (!all) continue;
        const auto ended = endSandbox(*directory);
        if (!first) first = ended ? metadata.error() : ended.error();
        continue;
      }
      removeDiscarded(*directory);
      // Nobody can use it any more, since a pool is known to its process alone.
      const bool orphan = metadata && metadata->pooled && metadata->pooled_by && !metadata->pooled_by->isAlive();
      const bool expired = metadata && metadata->secondsLeft(now) <= 0 && !isKept(*directory, *metadata);
      // Its time to live is unknown. It cannot be used, so it gets the grace period of an expired one.
      const bool abandoned =
          !metadata && isDamage(metadata.error()) && secondsUnchanged(*directory) > kSessionGraceSeconds;
      if (!all && !orphan && !expired && !abandoned) continue;
      if (auto destroyed = destroy(entry.name, !all && !orphan)) {
        removed.push_back(entry.name);
      } else if (const auto left = cache_->read(*directory); !first && destroyed.error().sys_errno != EBUSY &&
                                                             paths_.sessions().enter(entry.name) &&
                                                             (all || (left && left->secondsLeft(now) <= 0))) {
        first = destroyed.error();
      }
    } else if (entry.name.starts_with(kNew) || entry.name.starts_with(kGone)) {
      if (auto handled = removeLeftover(entry.name, all); !handled) return fail(handled.error());
    }
  }
  removeStaleNames();
  dropUnusedStores(paths_, *cache_, kTrash);
  emptyTrash(all);
  removeExpiredKept(paths_);
  if (all) paths_.removeEmptyMemoryStores();
  if (first) return fail(*first);
  return removed;
}

// A process that died while it handed out a pooled session leaves a name without a session of that name.
void Store::removeStaleNames() {
  auto lock = paths_.lockAll();
  const auto names = paths_.sessions().list(kNames);
  if (!lock || !names) return;
  for (const sys::DirectoryEntry& name : *names) {
    const std::string file = std::string(kNames) + "/" + name.name;
    if (name.name.starts_with('.')) (void)paths_.sessions().remove(file);  // was to replace one
    const auto id = paths_.sessions().readFile(file, 64);
    if (id && !paths_.sessions().stat(*id) && !paths_.sessions().stat(std::string(kNew) + *id))
      (void)paths_.sessions().remove(file);
  }
}

void Store::cleanSometimes() {
  struct stat status;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const int sessions = paths_.sessions().descriptor();
  if (::fstatat(sessions, ".cleaned", &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_mtime <= now.tv_sec &&
      now.tv_sec - status.st_mtime < kCleanEverySeconds) {
    return;
  }
  const sys::Fd mark(::openat(sessions, ".cleaned", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (mark) ::futimens(mark.get(), nullptr);
  (void)clean(false);
}

}  // namespace caisson::session
