#include "session/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "approval/owner.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/version.h"
#include "host/facts.h"
#include "plan/landlock_tier.h"
#include "plan/workspace.h"
#include "policy/decode/validate.h"
#include "session/client/connection.h"
#include "session/commit/git_base.h"
#include "session/commit/recover.h"
#include "session/layers/layer_stack.h"
#include "session/layers/root_layers.h"
#include "session/layers/steps.h"
#include "session/sandbox.h"
#include "session/store/rollback.h"
#include "session/store/session_info.h"
#include "session/store/unreadable.h"
#include "session/store/unused_stores.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/foreign_files.h"
#include "supervise/sandbox_id.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

using sys::FileType;
using sys::RootDir;

constexpr const char* kNames = ".names";
constexpr std::string_view kNew = ".new-";      // being created: the lock of all sessions is held
constexpr std::string_view kGone = ".gone-";    // being removed
constexpr std::string_view kTrash = ".trash-";  // unused layers, in the directory of stores
constexpr const char* kReserve = "reserve";
constexpr const char* kKept = "kept";  // expired with uncommitted changes
// How many entries and bytes of an expired session are compared to find uncommitted changes.
constexpr std::size_t kMaxLookedAt = 20'000;
constexpr std::uint64_t kMaxCompared = 64U << 20;
constexpr std::size_t kReserveBytes = 128 * 1024;
constexpr double kMaxTtl = 10.0 * 366 * 86400;
constexpr std::int64_t kCleanEverySeconds = 60;

Result<void> checkTierOptions(const SessionOptions& options) {
  const policy::Policy& policy = options.policy.model();
  if (options.auto_checkpoint) {
    return fail(plainError(Stage::policy, "session create", "--auto-checkpoint",
                           "a checkpoint is a layer of an overlay, which the landlock tier does without",
                           "leave it out; `caisson session diff` compares with the beginning"));
  }
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::ro) {
    return fail(plainError(Stage::policy, "session create", "filesystem.workspace.mode",
                           "a session keeps its changes apart from the real directory",
                           "use --workspace DIR, which the landlock tier copies, or DIR:rw"));
  }
  if (auto owned = approval::underOwner(policy); !owned) return fail(owned.error());
  return {};
}

Result<void> checkOptions(const SessionOptions& options) {
  const policy::Policy& policy = options.policy.model();
  if (!options.name.empty()) {
    if (auto checked = checkName("session create", options.name); !checked) return checked;
  }
  if (!(options.ttl_seconds > 0) || options.ttl_seconds > kMaxTtl) {
    return fail(plainError(Stage::usage, "session create", "ttl", "not a usable time",
                           "give a time above zero, such as 30m or 2h"));
  }
  if (policy.isolation.level == policy::Level::none) {
    return fail(plainError(Stage::policy, "session create", "isolation",
                           "a session needs namespaces: they are what it lives in", "use level full or process"));
  }
  const policy::WorkspaceMode mode = policy.filesystem.workspace.mode;
  if (inLandlockTier(policy)) return checkTierOptions(options);
  if (mode == policy::WorkspaceMode::ro || mode == policy::WorkspaceMode::rw) {
    return fail(plainError(Stage::policy, "session create", "filesystem.workspace.mode",
                           "a session keeps its changes apart from the real directory",
                           "use --workspace DIR (overlay) and `caisson session commit`"));
  }
  if (auto owned = approval::underOwner(policy); !owned) return fail(owned.error());
  return {};
}

/// The sockets of all sessions are below CAISSON_HOME: no sandbox may see them.
Result<void> checkHomeHidden(const plan::HostFacts& facts, const std::string& home, bool workspace) {
  const auto refuse = [&](const std::string& shown) {
    return fail(plainError(Stage::policy, "session create", shown, "caisson's own state (" + home + ") lies inside",
                           "show less, or move it with CAISSON_HOME"));
  };
  if (workspace && plan::below(home, facts.workspace.path)) return refuse(facts.workspace.path);
  for (const auto* list : {&facts.read_only, &facts.read_write}) {
    for (const plan::HostPath& path : *list) {
      if (plan::below(home, path.path) || plan::below(path.path, home)) return refuse(path.path);
    }
  }
  return {};
}

/// Stage::usage: callers tell it apart from faults of the machine, which have Stage::state.
Error unknown(std::string_view call, std::string_view id_or_name) {
  return plainError(Stage::usage, call, id_or_name, "there is no such session",
                    "`caisson session list` shows the sessions of this user");
}

/// Makes the files of a new session in the landlock tier.
Result<void> fillTierSession(const SessionPaths& paths, const Store::Found& session, const plan::HostFacts& facts) {
  const Metadata& metadata = session.metadata;
  if (!writesDirectly(metadata)) {
    plan::Plan ignored;
    if (auto checked = plan::checkHomeSecrets(metadata.policy, facts, facts.workspace, ignored);
        !checked && !metadata.workspace.empty()) {
      return checked;
    }
    if (auto copied = copyWorkspace(paths, metadata, facts.scan); !copied) return copied;
  }
  const auto warnings = checkTierSession(paths, metadata);
  if (!warnings) return fail(warnings.error());
  keepWarnings(session.directory, *warnings);
  return {};
}

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

void makeReserve(const RootDir& session) { (void)session.replaceFile(kReserve, std::string(kReserveBytes, 'r'), 0600); }

void releaseReserve(const RootDir& session) { (void)session.remove(kReserve); }

bool isCurrent(const SessionPaths& paths, const std::string& id, const RootDir& directory) {
  struct stat held, shown;
  return ::fstat(directory.descriptor(), &held) == 0 &&
         ::fstatat(paths.sessions().descriptor(), id.c_str(), &shown, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == shown.st_ino && held.st_dev == shown.st_dev;
}

std::string Store::newId() { return supervise::newSandboxId(); }

Result<std::string> Store::idOf(std::string_view call, std::string_view id_or_name) const {
  if (isId(id_or_name)) return std::string(id_or_name);
  if (auto checked = checkName(call, id_or_name); !checked) return fail(checked.error());
  auto id = paths_.sessions().readFile(std::string(kNames) + "/" + std::string(id_or_name), 64);
  if (id && isId(*id)) return *id;
  return idWithPrefix(call, id_or_name);
}

Result<std::string> Store::idWithPrefix(std::string_view call, std::string_view prefix) const {
  if (!isIdPrefix(prefix)) return fail(unknown(call, prefix));
  auto entries = paths_.sessions().list("");
  if (!entries) return fail(entries.error());
  std::string found;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!isId(entry.name) || !entry.name.starts_with(prefix)) continue;
    if (!found.empty()) {
      return fail(plainError(Stage::usage, call, prefix, "more than one session's id begins like this",
                             "type more of the id; `caisson session list` prints the ids"));
    }
    found = entry.name;
  }
  if (found.empty()) return fail(unknown(call, prefix));
  return found;
}

Result<Store::Found> Store::find(std::string_view call, std::string_view id_or_name) const {
  auto id = idOf(call, id_or_name);
  if (!id) return fail(id.error());
  auto directory = paths_.sessions().enter(*id);
  if (!directory) return fail(directory.error().sys_errno == ENOENT ? unknown(call, id_or_name) : directory.error());
  auto metadata = cache_->read(*directory);
  if (!metadata) return fail(metadata.error());
  if (metadata->id != *id || (metadata->name != id_or_name && !metadata->id.starts_with(id_or_name)))
    return fail(unknown(call, id_or_name));
  if (metadata->secondsLeft(Moment::now()) <= 0 && !isKept(*directory, *metadata)) {
    return fail(plainError(Stage::usage, call, id_or_name, "the session's time is over",
                           "make a new one; give it longer with --ttl, or renew it in time"));
  }
  return Found{std::move(*directory), std::move(*metadata)};
}

Result<std::vector<SessionInfo>> Store::list() const {
  auto entries = paths_.sessions().list("");
  if (!entries) return fail(entries.error());
  std::vector<SessionInfo> infos;
  bool unreadable = false;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!isId(entry.name)) continue;
    auto directory = paths_.sessions().enter(entry.name);
    if (!directory) continue;  // destroyed meanwhile
    const auto metadata = cache_->read(*directory);
    if (metadata && metadata->pooled) continue;  // not in use yet
    infos.push_back(metadata ? infoOf(paths_, *directory, *metadata) : infoOf(entry.name, metadata.error()));
    unreadable = unreadable || !metadata;
  }
  const auto names = unreadable ? namesById(paths_, kNames) : std::map<std::string, std::string>{};
  for (SessionInfo& info : infos) {
    if (const auto name = names.find(info.id); name != names.end() && info.name.empty()) info.name = name->second;
  }
  std::stable_sort(infos.begin(), infos.end(),
                   [](const SessionInfo& a, const SessionInfo& b) { return a.created < b.created; });
  return infos;
}

Result<void> Store::claimName(const std::string& name, const std::string& id) {
  if (name.empty()) return {};
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
  return claimNameLocked(name, id, false);
}

Result<void> Store::claimNameLocked(const std::string& name, const std::string& id, bool durable) {
  if (name.empty()) return {};
  const auto holder = find("session create", name);
  if (!holder && isOtherVersion(holder.error())) return fail(holder.error());
  if (holder) {
    const bool expired = holder->metadata.secondsLeft(Moment::now()) <= 0;
    return fail(plainError(
        Stage::usage, "session create", name,
        expired ? "an expired session of this name holds uncommitted changes" : "a session of this name exists",
        expired ? "choose another name, or commit, export or destroy it first"
                : "choose another name, or destroy it first"));
  }
  if (auto made = paths_.sessions().makeDirs(kNames, 0700); !made) return made;
  const std::string file = std::string(kNames) + "/" + name;
  const RootDir& sessions = paths_.sessions();
  return durable ? sessions.writeFileAtomic(file, id, 0600) : sessions.replaceFile(file, id, 0600);
}

Result<Store::Found> Store::make(const SessionOptions& options, bool pooled) {
  if (auto checked = checkOptions(options); !checked) return fail(checked.error());
  const RootDir& stores = paths_.stores();
  const bool tier = inLandlockTier(options.policy.model());
  if (auto fit = tier ? Result<void>() : checkFeatures(stores.knownAs(), stores.descriptor()); !fit)
    return fail(fit.error());
  Metadata metadata;
  auto policy = approval::underOwner(options.policy.model());
  if (!policy) return fail(policy.error());
  metadata.policy = std::move(*policy);
  const plan::HostFacts facts = host::collectFacts(metadata.policy);
  // A session keeps its image, also if the name later refers to another one.
  if (!facts.root.digest.empty()) metadata.policy.filesystem.root = facts.root.digest;
  plan::Plan scratch;
  const bool workspace = metadata.policy.filesystem.workspace.mode != policy::WorkspaceMode::none &&
                         !plan::declineCurrentDirectory(metadata.policy, facts, scratch);
  if (auto checked = checkHomeHidden(facts, paths_.home(), workspace); !checked) return fail(checked.error());
  if (auto checked = checkHomeHidden(facts, stores.knownAs(), workspace); !checked) return fail(checked.error());
  metadata.id = newId();
  metadata.name = options.name;
  metadata.auto_checkpoint = options.auto_checkpoint;
  metadata.pooled = pooled;
  if (pooled) metadata.pooled_by = ProcessId::of(::getpid());
  if (!options.keep) metadata.creator = ProcessId::of(::getpid());
  metadata.workspace = workspace ? facts.workspace.path : "";
  if (workspace && (facts.workspace.sys_errno != 0 || !facts.workspace.directory)) {
    return fail(sysError(Stage::host, "open workspace", facts.workspace.requested,
                         facts.workspace.sys_errno != 0 ? facts.workspace.sys_errno : ENOTDIR,
                         "give an existing directory you can enter: --workspace DIR, or --workspace :none"));
  }
  if (!isUtf8(metadata.workspace)) {
    return fail(plainError(Stage::usage, "session create", printable(metadata.workspace),
                           "a session's workspace must have a path in UTF-8", "rename the directory"));
  }
  metadata.began = Moment::now();
  metadata.setTtl(metadata.began, options.ttl_seconds);
  metadata.family = metadata.id;
  metadata.upper = newLayerName();
  metadata.root_upper = newLayerName();
  metadata.payload_id = facts.payload_id;
  auto found = add(std::move(metadata), options.wait_for_disk && !pooled);
  if (!found || !tier) return found;
  if (auto filled = fillTierSession(paths_, *found, facts); !filled) {
    (void)destroy(found->metadata.id);
    return fail(filled.error());
  }
  return found;
}

void Store::makeDurable(const std::string& id, const std::string& name) const {
  // Either may fail: the session may have been destroyed already.
  if (auto directory = paths_.sessions().enter(id)) (void)syncMetadata(*directory);
  if (!name.empty()) (void)paths_.sessions().makeDurable(std::string(kNames) + "/" + name);
}

void Store::makeDurableLater(const std::string& id, const std::string& name) {
  later_->add([this, id, name] { makeDurable(id, name); });
}

void Store::completeLater(const Metadata& metadata, sys::Fd replaced) {
  later_->add([this, id = metadata.id, name = metadata.name, workspace = metadata.workspace, began = metadata.began,
               held = std::make_shared<sys::Fd>(std::move(replaced))] {
    if (auto directory = paths_.sessions().enter(id)) recordGitBases(*directory, workspace, began);
    makeDurable(id, name);
    held->reset();
  });
}

Result<Store::Found> Store::add(Metadata metadata, bool durable) {
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
  const std::string hidden = std::string(kNew) + metadata.id;
  const auto build = [&]() -> Result<RootDir> {
    if (auto made = paths_.sessions().makeDirs(hidden, 0700); !made) return fail(made.error());
    auto directory = paths_.sessions().enter(hidden);
    if (!directory) return directory;
    for (const char* name : {kLogDirectory, kEmptyDirectory}) {
      if (auto made = directory->makeDirs(name, 0700); !made) return fail(made.error());
    }
    step("create: directories");
    makeReserve(*directory);
    writeFamily(*directory, metadata.family);
    const std::size_t limit = metadata.family == metadata.id ? kMaxNewMetadataBytes : kMaxMetadataBytes;
    auto written = durable ? writeMetadata(*directory, metadata, limit) : replaceMetadata(*directory, metadata, limit);
    if (!written) return fail(written.error());
    step("create: metadata");
    if (auto claimed = claimNameLocked(metadata.name, metadata.id, durable); !claimed) return fail(claimed.error());
    step("create: name");
    if (auto shown = paths_.sessions().rename(hidden, metadata.id, false); !shown) return fail(shown.error());
    return paths_.sessions().enter(metadata.id);
  };
  auto directory = build();
  if (!directory) {
    (void)supervise::removeForeignTree(paths_.sessions(), hidden);
    return fail(directory.error());
  }
  cache_->remember(*directory, metadata);
  return Found{std::move(*directory), std::move(metadata)};
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

Result<void> Store::removeStore(const std::string& family, const std::string& id) {
  if (auto removed = removeTierFiles(id); !removed) return removed;
  auto infos = paths_.sessions().list("");
  if (!infos) return fail(infos.error());
  for (const sys::DirectoryEntry& entry : *infos) {
    if (!isId(entry.name) || entry.name == id) continue;
    auto other = paths_.sessions().enter(entry.name);
    if (!other && other.error().sys_errno == ENOENT) continue;
    if (const auto used = other ? familyOf(*other, *cache_) : std::nullopt;
        !used || *used == family) {  // still used, or unknown
      dropUnusedLayersLocked(family);
      return {};
    }
  }
  if (auto removed = supervise::removeForeignTree(paths_.stores(), rootsOf(family)); !removed) return removed;
  return supervise::removeForeignTree(paths_.stores(), family);
}

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

Result<void> Store::destroy(const std::string& id) { return destroy(id, false); }

Result<void> Store::destroy(const std::string& id, bool only_expired) {
  auto directory = paths_.sessions().enter(id);
  if (!directory) return fail(directory.error().sys_errno == ENOENT ? unknown("destroy", id) : directory.error());
  auto lock = lockFile(*directory, kLockFile, true);
  if (!lock) return fail(lock.error());
  if (!isCurrent(paths_, id, *directory)) return fail(unknown("destroy", id));
  if (only_expired) {
    const auto current = cache_->read(*directory);
    if (current && current->secondsLeft(Moment::now()) > 0) return fail(unknown("destroy", id));  // renewed meanwhile
  }
  releaseReserve(*directory);
  if (isCommitPending(*directory)) {
    if (const auto found = cache_->read(*directory)) (void)recoverCommit(*directory, found->workspace);
  }
  if (auto ended = endSandbox(*directory); !ended) return ended;
  step("destroy: ended");
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
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
  if (auto removed = removeStore(family, id); !removed) return removed;
  step("destroy: layers removed");
  cache_->forget(*directory);
  return supervise::removeForeignTree(paths_.sessions(), gone);
}

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
      // Its time to live is unknown. Nobody can use it, so it gets the grace period of an expired one.
      const bool abandoned =
          !metadata && isDamage(metadata.error()) && secondsUnchanged(*directory) > kSessionGraceSeconds;
      if (!all && !orphan && !expired && !abandoned) continue;
      if (auto destroyed = destroy(entry.name, !all && !orphan)) {
        removed.push_back(entry.name);
      } else if (const auto left = cache_->read(*directory);
                 !first && paths_.sessions().enter(entry.name) && (all || (left && left->secondsLeft(now) <= 0))) {
        first = destroyed.error();
      }
    } else if (entry.name.starts_with(kNew) || entry.name.starts_with(kGone)) {
      // Creating or removing one needs this lock: an entry found now was left by a dead process.
      auto lock = paths_.lockAll();
      if (!lock) return fail(lock.error());
      const std::string id = entry.name.substr(entry.name.find('-') + 1);
      if (entry.name.starts_with(kGone)) {
        auto left = paths_.sessions().enter(entry.name);
        const auto family = left ? familyOf(*left, *cache_) : std::nullopt;
        (void)removeStore(family.value_or(id), id);
      }
      (void)supervise::removeForeignTree(paths_.sessions(), entry.name);
    }
  }
  removeStaleNames();
  dropUnusedStores(paths_, *cache_, kTrash);
  emptyTrash();
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

void Store::emptyTrash() {
  const auto entries = paths_.stores().list("");
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with(kTrash)) (void)supervise::removeForeignTree(paths_.stores(), entry.name);
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
