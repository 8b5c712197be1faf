// Verbs of `caisson image` that talk to a registry: pull, push.
#include "approval/owner.h"
#include "cli/image/actions.h"
#include "cli/image/common.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "image_store/pull.h"

namespace caisson::cli {

int pullAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 1); !checked) return complain(checked.error());
  const auto reference = image::Reference::parse(arguments.operands[0]);
  if (!reference) return complain(reference.error());
  const auto platform = platformFrom(arguments);
  if (!platform) return complain(platform.error());
  const auto owner = approval::loadOwner();
  if (!owner) return complain(owner.error());
  const auto quota = storeQuota();
  if (!quota) return complain(quota.error());
  const auto store = image::Store::open();
  if (!store) return complain(store.error());
  image::Progress progress(arguments.has(kImageQuiet));
  const auto result = image::pullImage(
      *store, {.reference = *reference, .platform = *platform, .quota = *quota, .settings = owner->images}, progress);
  if (!result) return complain(result.error());
  printReport(result->report);
  return print("Digest: " + result->requested.text() +
               "\nStatus: " + (result->changed ? "Downloaded newer image for " : "Image is up to date for ") +
               reference->familiar() + "\n");
}

int pushAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 2); !checked) return complain(checked.error());
  const auto target = image::Reference::parse(arguments.operands.back());
  if (!target) return complain(target.error());
  if (target->digest)
    return complain(usageError(arguments.operands.back(), "an image is pushed to a tag, not to a digest"));
  const auto owner = approval::loadOwner();
  if (!owner) return complain(owner.error());
  const auto store = image::Store::open();
  if (!store) return complain(store.error());
  const auto loaded = loadImage(*store, arguments.operands[0]);
  if (!loaded) return complain(loaded.error());
  image::Progress progress(arguments.has(kImageQuiet));
  const auto digest = image::pushImage(*store, loaded->stored, *target, owner->images, progress);
  return digest ? print(target->tag + ": digest: " + digest->text() + "\n") : complain(digest.error());
}

}  // namespace caisson::cli
