// The clean state for a rollback after an escape attempt, and the rollback.
//
// Before a command, if nothing runs, a new upper layer freezes what was written so far. So the upper layer holds only
// what commands wrote since the last moment at which nothing ran, and dropping it undoes exactly that.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iterator>
#include <thread>

#include "session/layers/squash.h"
#include "session/store/rollback.h"
#include "session/supervisor/supervisor.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

constexpr std::string_view kAutomatic = "auto-";
constexpr std::size_t kMaxAutomatic = 100;
constexpr int kLockTries = 20;
constexpr auto kLockPause = std::chrono::milliseconds(10);

bool isEmpty(int directory) {
  const sys::Fd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return false;
  alignas(dirent64) char room[512];  // before each command: three calls, no allocation
  for (;;) {
    const long got = sys::raw(SYS_getdents64, copy.get(), room, sizeof(room));
    if (got <= 0) return got == 0;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(room + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") return false;
      at += entry->d_reclen;
    }
  }
}

std::string freeName(const Metadata& metadata, std::string_view prefix) {
  for (std::size_t number = 1;; ++number) {
    std::string name = std::string(prefix) + std::to_string(number);
    const auto same = [&](const Checkpoint& one) { return one.name == name; };
    if (std::none_of(metadata.checkpoints.begin(), metadata.checkpoints.end(), same)) return name;
  }
}

void addAutomaticCheckpoint(Metadata& metadata) {
  auto& all = metadata.checkpoints;
  all.push_back({freeName(metadata, kAutomatic), std::time(nullptr), metadata.frozen});
  const auto automatic = [](const Checkpoint& one) { return one.name.starts_with(kAutomatic); };
  if (static_cast<std::size_t>(std::count_if(all.begin(), all.end(), automatic)) > kMaxAutomatic) {
    all.erase(std::find_if(all.begin(), all.end(), automatic));
  }
}

/// Creates the directories of a new upper layer, owned by the sandbox's user.
Result<sys::Fd> makeUpper(const SessionPaths& paths, const Metadata& metadata, const plan::Identity& identity) {
  auto store = paths.stores().enter(metadata.family);
  if (!store) return fail(store.error());
  for (const std::string& name : {metadata.upper, metadata.upper + ".work"}) {
    if (auto made = store->makeDirs(name, 0755); !made) return fail(made.error());
    if (!identity.parent_writes_maps) continue;
    auto opened = store->openFile(name, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
    if (!opened) return fail(opened.error());
    if (::fchown(opened->get(), identity.outside_uid, identity.outside_gid) != 0) {
      return fail(sysError(Stage::state, "fchown", name, errno));
    }
  }
  return store->openFile(metadata.upper, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
}

}  // namespace

bool Supervisor::canFreeze(std::size_t commands) const {
  const auto in_use = [](const auto& client) { return client.second.uses_workspace; };
  return sandbox_->canChangeLayers() && commands_.size() == commands && !sandbox_->busy() &&
         std::none_of(clients_.begin(), clients_.end(), in_use);
}

Result<bool> Supervisor::remountWorkspace() {
  auto upper = makeUpper(paths_, metadata_, sandbox_->plan().identity);
  if (!upper) return caisson::fail(upper.error());
  auto paused = sandbox_->pause();
  if (!paused || !*paused) return paused;
  limits_.reset();  // they refer to the old upper layer
  loop_.cancel(limits_timer_);
  limits_timer_ = 0;
  noteMounted();
  auto mounted = sandbox_->changeLayers(metadata_.frozen, metadata_.upper, std::move(*upper));
  if (!mounted) return caisson::fail(mounted.error());
  return true;
}

Result<void> Supervisor::prepareLayers(Command& command) {
  const auto found = newSecrets();
  if (!found) return caisson::fail(found.error());
  const std::vector<std::string>& secrets = *found;
  const bool written = sandbox_->canChangeLayers() && !isEmpty(sandbox_->upper());
  if (!mount_used_) mounted_listings_ = scan_cache_.listings;
  const bool old_names = hasOldNames();
  mount_used_ = true;
  if (!written && !old_names && secrets.empty()) return {};
  // Where no layer hides them, the masks of the sandbox's start are verified before the first command.
  const auto known = [&](const std::string& path) {
    const auto& hidden = sandbox_->plan().watched->hidden;
    return sandbox_->directParts().holds(path) && std::ranges::find(hidden, path) != hidden.end();
  };
  std::vector<std::string> shown;
  std::ranges::copy_if(secrets, std::back_inserter(shown), [&](const std::string& path) {
    return !known(path) && (!secret_watch_ || !secret_watch_->masks(path));
  });
  if (!shown.empty()) {
    command.options.notice =
        "hidden from now on, since they look like secrets: " + shown.front() + (shown.size() > 1 ? " and others" : "");
  }
  if (!canFreeze(1)) {
    if (metadata_.auto_checkpoint && written) {
      command.options.notice = "no automatic checkpoint was made: processes of the session are running";
    }
    hideAtOnce(secrets);
    return {};
  }
  if (!secrets.empty()) {
    auto store = paths_.stores().enter(metadata_.family);
    if (!store) return caisson::fail(store.error());
    for (const std::string& secret : secrets) {
      if (auto hidden = sandbox_->hide(*store, secret); !hidden) return hidden;
    }
  }
  if (written) {
    if (auto frozen = freeze(); !frozen) return frozen;
  }
  // Not frozen while a client changes the session.
  const bool outdated = !secrets.empty() || old_names;
  if (mount_used_ && outdated) {
    const auto mounted = remountWorkspace();
    if (!mounted) return caisson::fail(mounted.error());
    if (!*mounted) hideAtOnce(secrets);  // a process that no look at /proc found
  }
  mount_used_ = true;
  return {};
}

void Supervisor::noteMounted() {
  mount_used_ = false;
  mounted_listings_ = scan_cache_.listings;
  if (secret_watch_) secret_watch_->forgetMasks();
}

Result<void> Supervisor::freeze() {
  auto lock = lockFile(directory_, kLockFile, false);
  if (!lock) return {};  // a client is changing the session: freeze before the next command
  auto frozen = freezeUpper(1);
  if (!frozen) return caisson::fail(frozen.error());
  return {};
}

Result<bool> Supervisor::freezeUpper(std::size_t commands) {
  if (!sandbox_ || !sandbox_->canChangeLayers() || !canFreeze(commands)) return false;
  auto current = readMetadata(directory_);
  if (!current || current->frozen.size() >= kMaxDepth || current->upper != metadata_.upper) return false;
  if (isEmpty(sandbox_->upper())) return true;
  Metadata after = std::move(*current);
  after.frozen.insert(after.frozen.begin(), after.upper);
  after.upper = newLayerName();
  if (commands > 0 && after.auto_checkpoint) {
    addAutomaticCheckpoint(after);
    if (toJson(after).size() > kMaxGrownMetadataBytes) after.checkpoints.pop_back();
  }
  auto upper = makeUpper(paths_, after, sandbox_->plan().identity);
  if (!upper) return false;
  auto paused = sandbox_->pause();
  if (!paused) return caisson::fail(paused.error());
  if (!*paused) return false;
  InitRecord record{ProcessId::of(sandbox_->init()), ProcessId::of(::getpid()), after.mountedLayers()};
  record.layers.insert(record.layers.end(), metadata_.frozen.begin(), metadata_.frozen.end());
  auto written = writeInitRecord(directory_, record);
  if (written) written = replaceMetadata(directory_, after);
  if (!written) {
    if (auto resumed = sandbox_->resume(); !resumed) return caisson::fail(resumed.error());
    return false;
  }
  metadata_ = std::move(after);
  const bool reclaim = limits_ && limits_->muchHidden();
  limits_.reset();  // they refer to the old upper layer
  loop_.cancel(limits_timer_);
  limits_timer_ = 0;
  noteMounted();
  if (auto changed = sandbox_->changeLayers(metadata_.frozen, metadata_.upper, std::move(*upper)); !changed) {
    return caisson::fail(changed.error());
  }
  if (reclaim || metadata_.frozen.size() >= kSquashAt) launcher_.squash(reclaim);
  return true;
}

std::string Supervisor::rollBack() {
  releaseReserve(directory_);  // the attacker may have filled the disk
  auto lock = lockFile(directory_, kLockFile, false);
  for (int tries = 1; !lock && tries < kLockTries; ++tries) {
    std::this_thread::sleep_for(kLockPause);
    lock = lockFile(directory_, kLockFile, false);
  }
  if (!lock) {  // its holder may be waiting for this process
    const auto requested = requestRollback(directory_, metadata_.upper);
    return requested ? "the workspace is rolled back before the session is used again; what is discarded is kept as a "
                       "checkpoint evidence-N"
                     : "the workspace was not rolled back: " + requested.error().message();
  }
  auto current = readMetadata(directory_);
  if (!current) return "the workspace was not rolled back: " + current.error().message();
  const auto evidence = discardUpper(directory_, *current);
  if (!evidence) return "the workspace was not rolled back: " + evidence.error().message();
  metadata_ = std::move(*current);
  makeReserve(directory_);
  (void)record_.lifecycle(metadata_.id, metadata_.policy, "rolled back", *evidence);
  return "the workspace was rolled back to its state when nothing ran in the session, before this attempt; what was "
         "discarded is kept as checkpoint " +
         *evidence + " (`caisson session restore " + metadata_.id + " " + *evidence +
         "` brings it back); /tmp, the home and other temporary directories were discarded";
}

std::string Supervisor::endAndRollBack() {
  (void)sandbox_->kill();
  std::string rolled_back = rollBack();
  loop_.at(Clock::now(), [this] {
    for (auto& [number, command] : commands_) {
      command->runner->noteCause(EndedBy::sibling_escape);
    }
    (void)directory_.replaceFile(kEndReasonFile, kEndedByEscape, 0600);
    (void)endSandbox(kEndedByEscape);
    stopIfUnused();
  });
  return rolled_back;
}

}  // namespace caisson::session
