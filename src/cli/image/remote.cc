// Verbs of `caisson image` that talk to a registry: pull, push.
#include "approval/owner.h"
#include "cli/image/actions.h"
#include "cli/image/common.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "image_store/pull.h"

namespace caisson::cli {

int pullAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 1); !checked) return printError(checked.error());
  const auto reference = image::Reference::parse(arguments.operands[0]);
  if (!reference) return printError(reference.error());
  const auto platform = platformFrom(arguments);
  if (!platform) return printError(platform.error());
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  const auto quota = storeQuota();
  if (!quota) return printError(quota.error());
  const auto store = image::Store::open();
  if (!store) return printError(store.error());
  image::Progress progress(arguments.has(kImageQuiet));
  const auto result = image::pullImage(
      *store, {.reference = *reference, .platform = *platform, .quota = *quota, .settings = owner->images}, progress);
  if (!result) return printError(result.error());
  printReport(result->report);
  return print("Digest: " + result->requested.text() +
               "\nStatus: " + (result->changed ? "Downloaded newer image for " : "Image is up to date for ") +
               reference->familiar() + "\n");
}

int pushAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 2); !checked) return printError(checked.error());
  const auto target = image::Reference::parse(arguments.operands.back());
  if (!target) return printError(target.error());
  if (target->digest)
    return printError(usageError(arguments.operands.back(), "an image is pushed to a tag, not to a digest"));
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  const auto store = image::Store::open();
  if (!store) return printError(store.error());
  const auto loaded = loadImage(*store, arguments.operands[0]);
  if (!loaded) return printError(loaded.error());
  image::Progress progress(arguments.has(kImageQuiet));
  const auto digest = image::pushImage(*store, loaded->stored, *target, owner->images, progress);
  return digest ? print(target->tag + ": digest: " + digest->text() + "\n") : printError(digest.error());
}

}  // namespace caisson::cli
