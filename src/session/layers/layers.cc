// Checkpoint, restore, fork and diff: which layers make the session.
//
// The upper directory is frozen by no longer being the upper one. All of these change one small file atomically, so
// they take the same time for every size of tree, and a crash leaves the session before or after.
#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/version.h"
#include "session/client/session_context.h"
#include "session/client/worker.h"
#include "session/commit/directory_baseline.h"
#include "session/commit/git_base.h"
#include "session/layers/layer_stack.h"
#include "session/layers/root_layers.h"
#include "session/layers/squash.h"
#include "session/layers/steps.h"
#include "session/network/network.h"
#include "session/store/rollback.h"
#include "session/store/ttl.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr std::size_t kMaxCheckpoints = 1000;
constexpr const char* kBegin = "begin";

bool isUsed(const Metadata& metadata, std::string_view name) {
  return name == kBegin || std::any_of(metadata.checkpoints.begin(), metadata.checkpoints.end(),
                                       [&](const Checkpoint& one) { return one.name == name; });
}

std::string freeName(const Metadata& metadata) {
  for (std::size_t number = metadata.checkpoints.size() + 1;; ++number) {
    std::string name = "c" + std::to_string(number);
    if (!isUsed(metadata, name)) return name;
  }
}

/// Whether nothing was written since the last freeze. An empty layer need not be kept.
bool isEmpty(const RootDir& store, const std::string& layer) {
  const auto entries = store.list(layer, 1);
  if (!entries) return entries.error().sys_errno == ENOENT;  // no command ran yet
  return entries->empty();
}

bool isNearlyFull(const RootDir& directory) {
  constexpr std::uint64_t kLittle = 16U << 20;
  struct statvfs free{};
  return ::fstatvfs(directory.descriptor(), &free) == 0 && std::uint64_t{free.f_bavail} * free.f_frsize < kLittle;
}

/// Makes the upper layer a frozen one in `metadata`, unless it is empty. The caller writes the metadata.
Result<void> freeze(const SessionPaths& paths, std::string_view call, Metadata& metadata,
                    const std::string& why_not_squashed) {
  auto store = paths.stores().enter(metadata.family);
  if (!store && store.error().sys_errno != ENOENT) return fail(store.error());
  if (!store || isEmpty(*store, metadata.upper)) return {};
  if (metadata.frozen.size() >= kMaxDepth) {
    return fail(plainError(Stage::state, call, metadata.id,
                           "the session has " + std::to_string(kMaxDepth) +
                               " layers over each other, and they could not be "
                               "merged" +
                               (why_not_squashed.empty() ? "" : ": " + why_not_squashed),
                           "commit what is worth keeping and begin a new session, or restore an older checkpoint"));
  }
  metadata.frozen.insert(metadata.frozen.begin(), metadata.upper);
  metadata.upper = newLayerName();
  return {};
}

/// Gives the session the root of a checkpoint. Without one in the checkpoint, the root stays as it is.
void restoreRoot(std::string_view checkpoint, Metadata& metadata) {
  std::optional<std::vector<std::string>> root;
  if (checkpoint == kBegin) root.emplace();
  for (const Checkpoint& one : metadata.checkpoints) {
    if (one.name == checkpoint) root = one.root;
  }
  if (!root) return;
  metadata.root_frozen = std::move(*root);
  metadata.root_upper = newLayerName();
}

Error noLayers(std::string_view call, const Metadata& metadata) {
  return notInTier(call, metadata, "checkpoints and forks are layers of an overlay",
                   "commit what is worth keeping, or use git in the workspace");
}

}  // namespace

Result<void> SessionContext::settle(std::string_view call, WhenBusy when_busy) {
  disconnect();
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) {
    // A supervisor of a version that we cannot talk to: only a user who wants its processes ended may replace it.
    if (!isOtherVersion(opened.error()) || when_busy != WhenBusy::stop) return fail(opened.error());
    if (auto ended = endSandbox(directory_); !ended) return ended;
    auto rolled_back = carryOutRollback(directory_, metadata_);
    if (!rolled_back) return fail(rolled_back.error());
    return {};
  }
  if (!*opened) return killSandbox(directory_);  // what a killed supervisor left
  const SettleOptions options{.stop_processes = when_busy == WhenBusy::stop};
  auto settled = (*opened)->ask(MessageType::settle, codec::encode(options), call, id(), {}, kSandboxTimeout);
  if (settled) {
    // An escape attempt while we held the lock: nothing that it wrote may be frozen.
    auto rolled_back = carryOutRollback(directory_, metadata_);
    if (!rolled_back) return fail(rolled_back.error());
    return {};
  }
  if (settled.error().sys_errno == EBUSY) {
    return fail(sysError(Stage::state, call, id(), EBUSY,
                         "processes of the session are running: `caisson session ps " + id() +
                             "` lists them; stop them first, or use --stop"));
  }
  return killSandbox(directory_);
}

void SessionContext::makeRoom() {
  constexpr int kTimeoutMs = 600'000;
  if (auto current = readMetadata(directory_); !current || current->frozen.size() < kMaxDepth) return;
  auto worker = startWorker(store_->paths(), {"squash", id(), "wait"});
  if (worker) (void)awaitLine(*worker, kTimeoutMs);
}

void SessionContext::squashIfDeep() const {
  if (metadata_.frozen.size() >= kSquashAt) (void)startWorker(store_->paths(), {"squash", id()});
}

Result<CheckpointInfo> SessionContext::checkpoint(std::string_view name, WhenBusy when_busy) {
  if (inLandlockTier(metadata_.policy)) return fail(noLayers("session checkpoint", metadata_));
  if (!name.empty()) {
    if (auto checked = checkName("session checkpoint", name); !checked) return fail(checked.error());
  }
  makeRoom();
  auto held = lock();
  if (!held) return fail(held.error());
  if (isUsed(metadata_, name)) {
    return fail(plainError(Stage::usage, "session checkpoint", name, "the session has a checkpoint of this name",
                           "choose another name"));
  }
  if (metadata_.checkpoints.size() >= kMaxCheckpoints) {
    return fail(plainError(Stage::state, "session checkpoint", id(), "the session has a thousand checkpoints",
                           "begin a new session"));
  }
  if (auto settled = settle("session checkpoint", when_busy); !settled) return fail(settled.error());
  step("checkpoint: settled");
  Metadata after = metadata_;
  if (auto frozen = freeze(store_->paths(), "session checkpoint", after, whyNotSquashed(directory_)); !frozen) {
    return fail(frozen.error());
  }
  if (auto frozen = freezeRoot(store_->paths(), "session checkpoint", after); !frozen) return fail(frozen.error());
  const Checkpoint made{name.empty() ? freeName(after) : std::string(name), std::time(nullptr), after.frozen,
                        after.root_frozen};
  after.checkpoints.push_back(made);
  if (auto noted = note("checkpointed", made.name); !noted) return fail(noted.error());
  if (auto written = writeMetadata(directory_, after, kMaxGrownMetadataBytes); !written) return fail(written.error());
  step("checkpoint: written");
  metadata_ = std::move(after);
  held->reset();
  squashIfDeep();
  return CheckpointInfo{made.name, made.created};
}

Result<std::vector<CheckpointInfo>> SessionContext::checkpoints() {
  auto metadata = readMetadata(directory_);
  if (!metadata) return fail(metadata.error());
  std::vector<CheckpointInfo> infos;
  for (const Checkpoint& one : metadata->checkpoints) infos.push_back({one.name, one.created});
  return infos;
}

Result<std::vector<std::string>> SessionContext::layersOf(std::string_view call, std::string_view checkpoint) {
  if (checkpoint.empty() || checkpoint == kBegin) return std::vector<std::string>{};
  for (const Checkpoint& one : metadata_.checkpoints) {
    if (one.name == checkpoint) return one.frozen;
  }
  std::string known = kBegin;
  for (const Checkpoint& one : metadata_.checkpoints) known += ", " + one.name;
  return fail(plainError(Stage::usage, call, checkpoint, "the session has no such checkpoint", "it has " + known));
}

Result<void> SessionContext::restore(std::string_view checkpoint, WhenBusy when_busy) {
  if (inLandlockTier(metadata_.policy)) return fail(noLayers("session restore", metadata_));
  auto held = lock();
  if (!held) return fail(held.error());
  if (checkpoint.empty()) {
    return fail(plainError(Stage::usage, "session restore", id(), "no checkpoint given", "name one, or \"begin\""));
  }
  auto layers = layersOf("session restore", checkpoint);
  if (!layers) return fail(layers.error());
  releaseReserve(directory_);  // what fills the disk may be what is to be undone
  if (auto settled = settle("session restore", when_busy); !settled) return settled;
  step("restore: settled");
  Metadata after = metadata_;
  if (auto noted = note("restored", checkpoint); !noted) return noted;
  after.frozen = std::move(*layers);
  after.upper = newLayerName();
  restoreRoot(checkpoint, after);
  if (auto written = writeMetadata(directory_, after); !written) return written;
  metadata_ = std::move(after);
  step("restore: written");
  store_->dropUnusedLayers(metadata_.family);
  if (isNearlyFull(directory_)) store_->emptyTrash();  // what was undone may be what filled the disk
  makeReserve(directory_);
  return {};
}

Result<Store::Found> SessionContext::fork(const ForkOptions& options) {
  if (inLandlockTier(metadata_.policy)) return fail(noLayers("session fork", metadata_));
  if (!options.name.empty()) {
    if (auto checked = checkName("session fork", options.name); !checked) return fail(checked.error());
  }
  if (auto checked = checkTtl("session fork", "ttl", options.ttl_seconds); !checked) return fail(checked.error());
  makeRoom();
  auto held = lock();
  if (!held) return fail(held.error());
  if (auto settled = settle("session fork", options.when_busy); !settled) return fail(settled.error());
  Metadata after = metadata_;
  if (auto frozen = freeze(store_->paths(), "session fork", after, whyNotSquashed(directory_)); !frozen) {
    return fail(frozen.error());
  }
  if (auto frozen = freezeRoot(store_->paths(), "session fork", after); !frozen) return fail(frozen.error());
  if (after.upper != metadata_.upper || after.root_upper != metadata_.root_upper) {
    if (auto written = writeMetadata(directory_, after); !written) return fail(written.error());
    metadata_ = after;
  }
  step("fork: frozen");
  Metadata other = std::move(after);
  other.id = store_->newId();
  if (auto noted = note("forked", other.id); !noted) return fail(noted.error());
  for (const std::string& host : std::exchange(other.granted, {})) {
    std::erase(other.policy.network.allowed_hosts, host);  // approved for this session, not for another one
  }
  other.policy.network.published_ports.clear();  // the host's ports are taken by this session
  other.name = options.name;
  other.upper = newLayerName();
  other.root_upper = newLayerName();
  other.setTtl(Moment::now(), options.ttl_seconds);
  auto added = store_->add(std::move(other));
  if (added) {
    copyGitBases(directory_, added->directory);
    copyDirectories(directory_, added->directory);
  }
  return added;
}

Result<SessionContext::Compared> SessionContext::openForComparison(std::string_view call, std::string_view checkpoint) {
  if (inLandlockTier(metadata_.policy) && writesDirectly(metadata_)) {
    return fail(plainError(Stage::usage, call, id(),
                           "the session writes to the workspace directly, so there is nothing to compare with",
                           "without :rw a session has a copy of the workspace"));
  }
  auto base = layersOf(call, checkpoint);
  if (!base) return fail(base.error());
  auto roots = LayerRoots::open(store_->paths(), metadata_);
  if (!roots) return fail(roots.error());
  std::vector<std::string> current = metadata_.frozen;
  current.insert(current.begin(), metadata_.upper);
  auto before = roots->stack(*base);
  auto now = roots->stack(current);
  if (!before) return fail(before.error());
  if (!now) return fail(now.error());
  return Compared{std::move(*roots), std::move(*before), std::move(*now)};
}

Result<std::vector<Change>> SessionContext::diff(std::string_view checkpoint) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto compared = openForComparison("session diff", checkpoint);
  if (!compared) return fail(compared.error());
  return compareStacks(compared->before, compared->now);
}

}  // namespace caisson::session
