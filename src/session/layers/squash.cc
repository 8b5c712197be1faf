#include "session/layers/squash.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "session/client/session_context.h"
#include "session/layers/steps.h"
#include "sys/merge_layers.h"

namespace caisson::session {
namespace {

constexpr const char* kSquashLock = "squash.lock";
constexpr const char* kFailure = "squash.failed";

bool writeTo(const char* path, const std::string& text) {
  const sys::Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// `run` within `layers` becomes `one`; false when it is not in there.
bool replaceRun(std::vector<std::string>& layers, const std::vector<std::string>& run, const std::string& one) {
  const auto at = std::search(layers.begin(), layers.end(), run.begin(), run.end());
  if (at == layers.end()) return false;
  *at = one;
  layers.erase(at + 1, at + static_cast<std::ptrdiff_t>(run.size()));
  return true;
}

/// The new layer takes the place of the old ones, if they still are what the session rests on.
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
  if (auto seen = seeClosedDirectories(); !seen) return seen;
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

Result<void> seeClosedDirectories() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (uid == 0) return {};
  ::prctl(PR_SET_DUMPABLE, 1);  // or the process may not write its own id maps
  if (::unshare(CLONE_NEWUSER) != 0) return fail(sysError(Stage::state, "unshare", "user namespace", errno));
  const std::string ids = std::to_string(uid) + " " + std::to_string(uid) + " 1";
  const std::string groups = std::to_string(gid) + " " + std::to_string(gid) + " 1";
  if (writeTo("/proc/self/setgroups", "deny") && writeTo("/proc/self/uid_map", ids) &&
      writeTo("/proc/self/gid_map", groups)) {
    return {};
  }
  return fail(sysError(Stage::state, "write", "id maps", errno));
}

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
