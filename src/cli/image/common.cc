#include "cli/image/common.h"

#include "approval/owner.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "image/reference.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kDefaultQuota = 100ULL << 30;
constexpr std::size_t kExamples = 3;

}  // namespace

Result<LoadedImage> loadImage(const image::Store& store, const image::StoredName& stored) {
  auto manifest_text = image::readBlob(store.root(), stored.manifest);
  if (!manifest_text) return fail(manifest_text.error());
  auto manifest = image::parseManifest(*manifest_text);
  if (!manifest) return fail(manifest.error());
  auto config_text = image::readBlob(store.root(), manifest->config.digest);
  if (!config_text) return fail(config_text.error());
  auto config = image::parseConfig(*config_text);
  if (!config) return fail(config.error());
  return LoadedImage{stored, std::move(*manifest), std::move(*config), std::move(*manifest_text),
                     std::move(*config_text)};
}

Result<LoadedImage> loadImage(const image::Store& store, std::string_view reference) {
  const auto names = store.names();
  if (!names) return fail(names.error());
  const auto stored = image::findImage(store.root(), *names, reference);
  return stored ? loadImage(store, *stored) : fail(stored.error());
}

Result<void> expectOperands(const Arguments& arguments, std::size_t least, std::size_t most) {
  const std::size_t count = arguments.operands.size();
  if (count < least) return fail(usageError("image", "an argument is missing", "caisson image --help"));
  if (count > most) return fail(usageError(arguments.operands[most], "unexpected argument", "caisson image --help"));
  return {};
}

Result<image::Platform> platformFrom(const Arguments& arguments) {
  const auto text = arguments.value(kImagePlatform);
  if (!text) return image::hostPlatform();
  const auto platform = image::parsePlatform(*text);
  if (!platform) return fail(usageError(*text, "expected a platform such as linux/arm64"));
  return *platform;
}

Result<std::uint64_t> storeQuota() {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  return owner->images.quota.value_or(kDefaultQuota);
}

void printReport(const image::UnpackReport& report) {
  for (const auto& [what, count] : report.counts()) {
    std::string line = what + ": " + std::to_string(count) + " (";
    std::size_t shown = 0;
    for (const auto& note : report.notes()) {
      if (note.what != what || shown == kExamples) continue;
      line += (shown++ == 0 ? "" : ", ") + note.name + (note.detail.empty() ? "" : ": " + note.detail);
    }
    printNotice(line + (count > shown ? ", ...)" : ")"));
  }
}

std::string shownImageName(const image::StoredName& stored) {
  const auto reference = image::Reference::parse(stored.name);
  return reference ? reference->familiar() : "<none>";
}

}  // namespace caisson::cli
