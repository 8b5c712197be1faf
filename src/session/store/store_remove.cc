// Removes one session with its files, and layers that no session uses any more.
#include <cerrno>

#include "session/client/connection.h"
#include "session/commit/recover.h"
#include "session/commit/uncommit.h"
#include "session/layers/root_layers.h"
#include "session/layers/steps.h"
#include "session/sandbox.h"
#include "session/store/store.h"
#include "session/store/store_files.h"
#include "session/store/unreadable.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {

Result<void> Store::destroy(const std::string& id) { return destroy(id, false); }

Result<void> Store::destroy(const std::string& id, bool only_expired) {
  auto directory = paths_.sessions().enter(id);
  if (!directory) return fail(directory.error().sys_errno == ENOENT ? noSuchSession("destroy", id) : directory.error());
  // An expired session in use is left for the next clean-up: other users of the store must not wait for it.
  auto lock = lockFileWithin(*directory, kLockFile, only_expired ? std::chrono::milliseconds(0) : lockTimeout());
  if (!lock) return fail(lock.error());
  if (!isCurrent(paths_, id, *directory)) return fail(noSuchSession("destroy", id));
  if (only_expired) {
    const auto current = cache_->read(*directory);
    if (current && current->secondsLeft(Moment::now()) > 0)
      return fail(noSuchSession("destroy", id));  // renewed meanwhile
  }
  releaseReserve(*directory);
  if (auto finished = finishCommitOf(id, *directory, only_expired); !finished) return finished;
  if (auto ended = endSandbox(*directory); !ended) return ended;
  step("destroy: ended");
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
  const Removal removal = beginRemoval(paths_.sessions(), id);
  const auto metadata = cache_->read(*directory);
  const std::string family = familyOf(*directory, *cache_).value_or(id);
  // From here on it is destroyed for all callers; after a crash the next clean-up removes the rest.
  const std::string gone = std::string(kGone) + id;
  if (auto renamed = paths_.sessions().rename(id, gone, false); !renamed) return renamed;
  step("destroy: hidden");
  if (metadata && !metadata->name.empty()) {
    const std::string name = std::string(kNames) + "/" + metadata->name;
    if (auto holder = paths_.sessions().readFile(name, 64); holder && *holder == id) {
      (void)paths_.sessions().remove(name);
    }
  }
  const auto retired = retireStore(family, id);
  if (!retired) return fail(retired.error());
  cache_->forget(*directory);
  all->reset();  // a payload decides how long the removal takes: no other session may wait for it
  return removeRetired(id, *retired);
}

Result<void> Store::finishCommitOf(const std::string& id, const sys::RootDir& directory, bool only_expired) {
  if (!isCommitPending(directory)) return {};
  if (const auto undone = finishUncommit(paths_, id); undone && *undone) {  // else `session uncommit` does
    (void)notify(describeFinished(**undone));
  }
  const auto metadata = cache_->read(directory);
  const InterruptedCommit commit{directory, id, metadata ? metadata->workspace : ""};
  if (metadata) {
    const auto recovered = recoverCommit(paths_, commit, openRealDirectory(*metadata));
    if (recovered && *recovered) (void)notify(describeFinished(**recovered));
    if (recovered) return {};
  }
  if (!isCommitPending(directory)) return {};  // it was set aside
  if (only_expired && metadata && metadata->secondsSinceEnd(Moment::now()) <= kSessionGraceSeconds) {
    return fail(sysError(Stage::state, "session destroy", id, EBUSY,
                         "a commit of the session was interrupted and cannot be finished now"));
  }
  return setAsideUnfinished(paths_, commit);
}

void Store::dropUnusedLayers(const std::string& family) {
  if (auto all = paths_.lockAll()) dropUnusedLayersLocked(family);
}

void Store::dropUnusedLayersLocked(const std::string& family) {
  auto sessions = paths_.sessions().list("");
  if (!sessions) return;
  std::set<std::string> used{"lower", "mask"};
  for (const sys::DirectoryEntry& entry : *sessions) {
    if (!isId(entry.name) && !entry.name.starts_with(kNew)) continue;
    auto directory = paths_.sessions().enter(entry.name);
    if (!directory) continue;
    if (const auto other = familyOf(*directory, *cache_); other && *other != family) continue;
    const auto metadata = cache_->read(*directory);
    if (!metadata) return;  // its layers are unknown
    for (std::string& layer : metadata->mountedLayers()) used.insert(std::move(layer));
    for (const Checkpoint& one : metadata->checkpoints) {
      used.insert(one.frozen.begin(), one.frozen.end());
      if (one.root) used.insert(one.root->begin(), one.root->end());
    }
    // A running sandbox still has its layers mounted, even if the list changed since.
    if (const auto init = readInitRecord(*directory)) used.insert(init->layers.begin(), init->layers.end());
  }
  for (const std::string& directory : {family, rootsOf(family)}) {
    const auto layers = paths_.stores().list(directory);
    for (const sys::DirectoryEntry& entry : layers ? *layers : std::vector<sys::DirectoryEntry>{}) {
      const std::string layer = entry.name.substr(0, entry.name.find('.'));
      if (used.contains(layer)) continue;
      (void)supervise::renameForeign(paths_.stores(), directory + "/" + entry.name,
                                     std::string(kTrash) + directory + "." + entry.name);
    }
  }
}

Result<std::vector<Store::Retired>> Store::retireStore(const std::string& family, const std::string& id) {
  auto infos = paths_.sessions().list("");
  if (!infos) return fail(infos.error());
  for (const sys::DirectoryEntry& entry : *infos) {
    if (!isId(entry.name) || entry.name == id) continue;
    auto other = paths_.sessions().enter(entry.name);
    if (!other && other.error().sys_errno == ENOENT) continue;
    if (const auto used = other ? familyOf(*other, *cache_) : std::nullopt;
        !used || *used == family) {  // still used, or unknown
      dropUnusedLayersLocked(family);
      return std::vector<Retired>{};
    }
  }
  std::vector<Retired> retired;
  for (const std::string& name : {rootsOf(family), family}) {
    Retired one{.name = std::string(kTrash) + name, .removal = beginRemoval(paths_.stores(), name)};
    const auto renamed = supervise::renameForeign(paths_.stores(), name, one.name);
    if (!renamed && renamed.error().sys_errno == ENOENT) continue;
    if (!renamed) return fail(renamed.error());
    step("destroy: store renamed");
    retired.push_back(std::move(one));
  }
  return retired;
}

Result<void> Store::removeRetired(const std::string& id, const std::vector<Retired>& retired) {
  step("destroy: removing");
  if (auto removed = removeTierFiles(id); !removed) return removed;
  for (const Retired& one : retired) {
    if (auto removed = supervise::removeForeignTree(paths_.stores(), one.name); !removed) return removed;
  }
  step("destroy: layers removed");
  // Last: it is what tells the next clean-up that something is left.
  return supervise::removeForeignTree(paths_.sessions(), std::string(kGone) + id);
}

Result<void> Store::removeLeftover(const std::string& name, bool join) {
  const std::string id = name.substr(name.find('-') + 1);
  if (!isId(id)) return {};  // not ours
  const std::string gone = std::string(kGone) + id;
  // Creating a session needs this lock: a partly created one found now was left by a dead process.
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
  const Removal removal = beginRemoval(paths_.sessions(), name);
  if (removal.elsewhere && !join) return {};
  if (name != gone && !paths_.sessions().rename(name, gone, false)) return {};
  auto left = paths_.sessions().enter(gone);
  const auto family = left ? familyOf(*left, *cache_) : std::nullopt;
  auto retired = retireStore(family.value_or(id), id);
  all->reset();
  (void)removeRetired(id, retired ? *std::move(retired) : std::vector<Retired>{});
  return {};
}

void Store::emptyTrash(bool join) {
  const auto entries = paths_.stores().list("");
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!entry.name.starts_with(kTrash)) continue;
    const Removal removal = beginRemoval(paths_.stores(), entry.name);
    if (!removal.elsewhere || join) (void)supervise::removeForeignTree(paths_.stores(), entry.name);
  }
}

}  // namespace caisson::session
