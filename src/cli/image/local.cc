// Verbs of `caisson image` that work on the store and on files: import, save, tag, remove, prune.
#include <sys/file.h>

#include <algorithm>
#include <cerrno>

#include "approval/owner.h"
#include "cli/image/actions.h"
#include "cli/image/common.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "image/reference.h"
#include "image_store/import.h"
#include "image_store/save.h"
#include "image_store/session_images.h"
#include "image_store/signature.h"

namespace caisson::cli {
namespace {

using image::Store;
using image::StoredName;

std::string describeRemoved(const image::Removed& removed) {
  std::string text = "reclaimed " + image::readableSize(removed.bytes) + "\n";
  if (!removed.in_use.empty()) text += std::to_string(removed.in_use.size()) + " layers stay: a sandbox uses them\n";
  return text;
}

/// Removes blobs and layers that are not needed any more, and prints how much that was.
int collect(const Store& store, const image::StoreLock& lock) {
  const auto removed = store.collectGarbage(lock);
  return removed ? print(describeRemoved(*removed)) : printError(removed.error());
}

/// Whether a sandbox uses a layer of the image.
bool inUse(const Store& store, const StoredName& stored) {
  const auto loaded = loadImage(store, stored);
  return loaded && std::ranges::any_of(loaded->manifest.layers, [&](const image::Descriptor& layer) {
           // Without O_CREAT: an empty file would look like a damaged record. Released at once; lookup() waits for it.
           const auto file =
               store.root().openFile(image::layerPath(layer.digest) + std::string(image::kLayerComplete), {});
           return file ? ::flock(file->get(), LOCK_EX | LOCK_NB) != 0 : file.error().sys_errno != ENOENT;
         });
}

}  // namespace

int importAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 2); !checked) return printError(checked.error());
  const auto platform = platformFrom(arguments);
  if (!platform) return printError(platform.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  const auto quota = storeQuota();
  if (!quota) return printError(quota.error());
  image::Progress progress(arguments.has(kImageQuiet));
  image::ImportOptions options{.path = std::string(arguments.operands[0]),
                               .platform = *platform,
                               .quota = *quota,
                               .settings = owner->images,
                               .replace = arguments.has(kImageReplace)};
  while (options.path.size() > 1 && options.path.ends_with('/')) options.path.pop_back();
  if (arguments.operands.size() == 2) options.name = arguments.operands[1];
  const auto result = image::importImage(*store, options, progress);
  if (!result) return printError(result.error());
  printReport(result->report);
  std::string out;
  for (const image::ImportedImage& imported : result->images) {
    for (const std::string& name : imported.names)
      out += "Loaded image: " + image::Reference::parse(name)->familiar() + "\n";
    if (imported.names.empty()) out += "Loaded image ID: " + imported.config.text() + "\n";
  }
  return print(out);
}

int saveAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 2, 2); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  const auto loaded = loadImage(*store, arguments.operands[0]);
  if (!loaded) return printError(loaded.error());
  image::Progress progress(arguments.has(kImageQuiet));
  const bool docker = arguments.value(kImageFormat).value_or("oci") == "docker";
  const auto saved = image::saveImage(*store, loaded->stored, std::string(arguments.operands[1]),
                                      docker ? image::SaveFormat::docker : image::SaveFormat::oci, progress);
  return saved ? 0 : printError(saved.error());
}

int tagAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 2, 2); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  auto loaded = loadImage(*store, arguments.operands[0]);
  if (!loaded) return printError(loaded.error());
  const auto name = image::Reference::parse(arguments.operands[1]);
  if (!name) return printError(name.error());
  if (name->digest) return printError(usageError(arguments.operands[1], "a new name has no digest"));
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  if (auto allowed = image::checkNewName(*name, owner->images); !allowed) return printError(allowed.error());
  loaded->stored.name = name->tagged();
  loaded->stored.signed_by.clear();  // they signed it under the other name
  const auto added = store->addNames({loaded->stored});
  return added ? 0 : printError(added.error());
}

int removeAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 1000); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  // Before names are removed: a build uses images that only these names refer to.
  const auto lock = store->lockForRemoval();
  if (!lock) return printError(lock.error());
  const auto used = image::sessionImages();
  if (!used) return printError(used.error());
  std::string out;
  for (const std::string_view reference : arguments.operands) {
    const auto names = store->names();
    if (!names) return printError(names.error());
    const auto found = image::findImage(store->root(), *names, reference);
    if (!found) return printError(found.error());
    const auto parsed = image::Reference::parse(reference);
    // By name only this name goes; by id all names of the image.
    const bool by_name = parsed && !found->name.empty() && (found->name == parsed->tagged() || parsed->digest);
    if (!by_name && used->contains(found->manifest)) {
      return printError(plainError(Stage::usage, "image remove", reference, "a session uses this image",
                                   "caisson session list; destroy the session first"));
    }
    const auto removed = store->removeNames(
        [&](const StoredName& entry) {
          return by_name ? entry.name == found->name : entry.manifest == found->manifest;
        },
        *used);
    if (!removed) return printError(removed.error());
    out += (by_name ? "Untagged: " + shownImageName(*found) : "Deleted: " + found->manifest.text()) + "\n";
  }
  if (const int status = print(out); status != 0) return status;
  return collect(*store, *lock);
}

int pruneAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 0, 0); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  const bool all = arguments.has(kImageAll);
  // Before names are removed: a build uses images that only these names refer to.
  const auto lock = store->lockForRemoval();
  if (!lock) return printError(lock.error());
  const auto used = image::sessionImages();
  if (!used) return printError(used.error());
  const auto removed = store->removeNames(
      [&](const StoredName& entry) {
        const bool wanted = all || entry.name.empty() || entry.name.starts_with(image::kBuildCache);
        return wanted && !used->contains(entry.manifest) && !inUse(*store, entry);
      },
      *used);
  if (!removed) return printError(removed.error());
  return collect(*store, *lock);
}

}  // namespace caisson::cli
