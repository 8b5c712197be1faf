// Creates sessions: checks their options, collects their metadata, makes their files durable.
#include <unistd.h>

#include <cerrno>

#include "approval/owner.h"
#include "host/facts.h"
#include "plan/landlock_tier.h"
#include "plan/workspace.h"
#include "session/commit/directory_baseline.h"
#include "session/commit/git_base.h"
#include "session/layers/steps.h"
#include "session/sandbox.h"
#include "session/session_policy.h"
#include "session/store/rollback.h"
#include "session/store/session_info.h"
#include "session/store/store.h"
#include "session/store/store_files.h"
#include "session/store/ttl.h"
#include "session/store/unreadable.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr const char* kReserve = "reserve";
constexpr std::size_t kReserveBytes = 128 * 1024;

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
  if (auto checked = checkTtl("session create", "ttl", options.ttl_seconds); !checked) return checked;
  if (auto checked = checkPolicy(policy); !checked) return checked;
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

}  // namespace

void makeReserve(const RootDir& session) { (void)session.replaceFile(kReserve, std::string(kReserveBytes, 'r'), 0600); }

void releaseReserve(const RootDir& session) { (void)session.remove(kReserve); }

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
  if (metadata.policy.use == policy::Policy().use) metadata.policy.use = kSessionUse;
  const plan::HostFacts facts = host::collectFacts(metadata.policy, {.keep_index = true});
  // A session keeps its image, also if the name later refers to another one.
  if (!facts.root.digest.empty()) metadata.policy.filesystem.root = facts.root.digest;
  plan::Plan scratch;
  const bool workspace = metadata.policy.filesystem.workspace.mode != policy::WorkspaceMode::none &&
                         !plan::declineCurrentDirectory(metadata.policy, facts, scratch);
  if (auto checked = checkStateHidden(paths_, facts, workspace); !checked) return fail(checked.error());
  metadata.id = newId();
  metadata.name = options.name;
  metadata.auto_checkpoint = options.auto_checkpoint;
  metadata.pooled = pooled;
  if (pooled) metadata.pooled_by = ProcessId::of(::getpid());
  if (!options.keep) metadata.creator = ProcessId::of(::getpid());
  if (workspace) {
    if (auto set = setRealDirectory(facts, metadata); !set) return fail(set.error());
  }
  metadata.began = Moment::now();
  metadata.setTtl(metadata.began, options.ttl_seconds);
  metadata.family = metadata.id;
  metadata.upper = newLayerName();
  metadata.root_upper = newLayerName();
  metadata.payload_id = facts.payload_id;
  auto found = add(std::move(metadata), options.wait_for_disk && !pooled);
  if (!found || !tier) return found;
  waitForTickAfter(found->metadata.began);
  if (auto filled = fillTierSession(paths_, *found, facts); !filled) {
    (void)destroy(found->metadata.id);
    return fail(filled.error());
  }
  return found;
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

void Store::makeDurable(const std::string& id, const std::string& name) const {
  // Either may fail: the session may have been destroyed already.
  if (auto directory = paths_.sessions().enter(id)) (void)syncMetadata(*directory);
  if (!name.empty()) (void)paths_.sessions().makeDurable(std::string(kNames) + "/" + name);
}

void Store::makeDurableLater(const std::string& id, const std::string& name) {
  later_->add([this, id, name] { makeDurable(id, name); });
}

void Store::completeLater(const Metadata& metadata, sys::Fd replaced) {
  later_->add([this, metadata, held = std::make_shared<sys::Fd>(std::move(replaced))] {
    if (auto directory = paths_.sessions().enter(metadata.id)) {
      recordGitBases(*directory, metadata);
      recordDirectories(*directory, metadata, CommandsRun::perhaps);
    }
    makeDurable(metadata.id, metadata.name);
    held->reset();
  });
}

}  // namespace caisson::session
