#include "session/layers/squash.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "session/client/session_context.h"
#include "session/layers/layer_stack.h"
#include "session/layers/steps.h"
#include "session/store/rollback.h"
#include "supervise/limits/closed_tree.h"
#include "sys/merge_layers.h"

namespace caisson::session {
namespace {

constexpr const char* kSquashLock = "squash.lock";
constexpr const char* kFailure = "squash.failed";

/// `run` within `layers` becomes `one`; false when it is not in there.
bool replaceRun(std::vector<std::string>& layers, const std::vector<std::string>& run, const std::string& one) {
  const auto at = std::search(layers.begin(), layers.end(), run.begin(), run.end());
  if (at == layers.end()) return false;
  *at = one;
  layers.erase(at + 1, at + static_cast<std::ptrdiff_t>(run.size()));
  return true;
}

/// Replaces the layers `run` by the merged layer `one` in the metadata, checkpoints included. Nothing if the session
/// does not have these layers any more.
Result<void> show(SessionContext& handle, const std::vector<std::string>& run, const std::string& one) {
  auto held = handle.lock();
  if (!held) return fail(held.error());
  const SessionPaths& paths = handle.store().paths();
  auto all = paths.lockAll();  // else a clean-up could remove the new layer, which is not referenced yet
  if (!all) return fail(all.error());
  Metadata after = handle.metadata();
  auto store = paths.stores().enter(after.family);
  if (!store) return fail(store.error());
  if (auto there = store->stat(one); !there) return fail(there.error());
  if (!replaceRun(after.frozen, run, one)) return {};  // restored meanwhile
  for (Checkpoint& checkpoint : after.checkpoints) replaceRun(checkpoint.frozen, run, one);
  return writeMetadata(handle.directory(), after);
}

Result<void> squashLayers(SessionContext& handle, std::size_t least) {
  std::vector<std::string> run;
  std::string family;
  {
    auto held = handle.lock();
    if (!held) return fail(held.error());
    run = handle.metadata().frozen;
    family = handle.metadata().family;
  }
  if (run.size() < least) return {};
  const SessionPaths& paths = handle.store().paths();
  auto store = paths.stores().enter(family);
  if (!store) return fail(store.error());
  if (auto claimed = claimLayers(paths, handle.metadata()); !claimed) return claimed;
  if (const long entered = supervise::enterOwnersNamespace(); entered < 0) {
    return fail(sysError(Stage::state, "unshare", "user namespace", static_cast<int>(-entered)));
  }
  const std::string one = newLayerName();
  step("squash: begun");
  auto merged = sys::mergeLayers(*store, run, one);
  if (merged) {
    const sys::Fd directory(::openat(store->descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::syncfs(directory.get());  // what the metadata name must not be lost when the power is
    step("squash: merged");
    merged = show(handle, run, one);
    step("squash: shown");
  }
  handle.store().dropUnusedLayers(family);  // the old ones, or the new one
  step("squash: dropped");
  handle.store().emptyTrash();
  return merged;
}

}  // namespace

Result<void> squash(const std::shared_ptr<Store>& store, const std::string& id, const SquashOptions& options) {
  auto found = store->find("session squash", id);
  if (!found) return fail(found.error());
  SessionContext handle(store, std::move(*found));
  auto turn = lockFile(handle.directory(), kSquashLock, options.wait);
  if (!turn) return {};  // another process merges them already
  auto done = squashLayers(handle, options.least);
  if (done) {
    (void)handle.directory().remove(kFailure);
  } else {
    (void)handle.directory().writeFileAtomic(kFailure, done.error().message(), 0600);
  }
  return done;
}

std::string whyNotSquashed(const sys::RootDir& session) {
  auto text = session.readFile(kFailure, 64 * 1024);
  return text ? *std::move(text) : "";
}

}  // namespace caisson::session
