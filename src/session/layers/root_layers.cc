#include "session/layers/root_layers.h"

#include <algorithm>
#include <cerrno>

#include "session/sandbox.h"
#include "session/store/rollback.h"
#include "sys/descriptor_path.h"

namespace caisson::session {

bool keepsRoot(const plan::Plan& plan) {
  return std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    return directory != nullptr && directory->on_disk && directory->target == plan::kRootChanges;
  });
}

std::string rootsOf(const std::string& family) { return family + ".roots"; }

Result<void> freezeRoot(const SessionPaths& paths, std::string_view call, Metadata& metadata) {
  const auto entries = paths.stores().list(rootsOf(metadata.family) + "/" + metadata.root_upper + "/upper", 1);
  const bool written = entries ? !entries->empty() : entries.error().sys_errno != ENOENT;
  if (!written) return {};
  if (metadata.root_frozen.size() >= kMaxRootLayers) {
    return fail(plainError(Stage::state, call, metadata.id,
                           "its root was changed between " + std::to_string(kMaxRootLayers) + " checkpoints",
                           "make an image of it with `caisson image commit` and begin a new session, or restore an "
                           "older checkpoint"));
  }
  metadata.root_frozen.insert(metadata.root_frozen.begin(), metadata.root_upper);
  metadata.root_upper = newLayerName();
  return {};
}

Result<OpenedRoots> openRoots(const SessionPaths& paths, const Metadata& metadata) {
  const std::string name = rootsOf(metadata.family);
  if (auto made = paths.stores().makeDirs(name, 0700); !made) return fail(made.error());
  auto roots = paths.stores().enter(name);
  if (!roots) return fail(roots.error());
  auto path = sys::canonicalPath(roots->descriptor());
  if (!path) return fail(path.error());
  return OpenedRoots{std::move(*roots), std::move(*path)};
}

Result<void> useRootLayers(const SessionPaths& paths, const Metadata& metadata, plan::Plan& plan) {
  if (metadata.root_frozen.empty() || !keepsRoot(plan)) return {};
  const auto roots = openRoots(paths, metadata);
  if (!roots) return fail(roots.error());
  const auto first = std::ranges::find_if(
      plan.steps, [](const plan::Step& step) { return std::holds_alternative<plan::RootLayer>(step); });
  std::vector<plan::Step> layers;
  for (const std::string& name : metadata.root_frozen)
    layers.emplace_back(plan::RootLayer{.source = roots->path + "/" + name + "/upper", .above = true});
  plan.steps.insert(first, layers.begin(), layers.end());
  return {};
}

Result<supervise::DiskDirectories> prepareDiskDirectories(const SessionPaths& paths, const sys::RootDir& session,
                                                          const Metadata& metadata, const plan::Plan& plan) {
  if (!supervise::hasDiskDirectories(plan)) return supervise::DiskDirectories();
  if (auto made = session.makeDirs(kScratchDirectory, 0700); !made) return fail(made.error());
  auto scratch = session.enter(kScratchDirectory);
  if (!scratch) return fail(scratch.error());
  auto path = sys::canonicalPath(scratch->descriptor());
  if (!path) return fail(path.error());
  if (!keepsRoot(plan)) return supervise::makeDiskDirectories(*scratch, *path, plan);
  auto roots = openRoots(paths, metadata);
  if (!roots) return fail(roots.error());
  const supervise::KeptRoot kept{roots->store, roots->path, metadata.root_upper};
  return supervise::makeDiskDirectories(*scratch, *path, plan, &kept);
}

}  // namespace caisson::session
