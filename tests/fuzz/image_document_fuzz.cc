// What a registry or an archive sends as text: references, indexes, manifests, configurations, records.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "image/layout.h"
#include "image/model.h"
#include "image/reference.h"
#include "image_store/layer_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace image = caisson::image;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto reference = image::Reference::parse(text)) {
    // The full form means the same.
    const auto again = image::Reference::parse(reference->text());
    if (!again || again->text() != reference->text()) std::abort();
    if (reference->name().find("..") != std::string::npos) std::abort();
  }
  if (const auto manifest = image::parseManifest(text); manifest && image::parseIndex(text)) std::abort();
  (void)image::parseConfig(text);
  (void)image::LayerCompletion::parse(text);
  if (const auto line = image::RecordLine::parse(text);
      line && !image::RecordLine::parse(line->written().substr(0, line->written().size() - 1)))
    std::abort();
  return 0;
}
