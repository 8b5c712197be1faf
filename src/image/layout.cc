#include "image/layout.h"

#include <cerrno>
#include <charconv>

#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/version.h"
#include "sys/state_home.h"

namespace caisson::image {

std::string storePath() {
  const std::string home = sys::stateHome();
  return home.empty() ? "" : home + "/" + std::string(kStoreDirectory);
}

Result<void> checkStoreFormat(const sys::RootDir& store) {
  const auto text = store.readFile(kFormatFile, 64);
  if (!text && text.error().sys_errno == ENOENT) return {};
  if (!text) return fail(text.error());
  FormatVersion format;
  (void)std::from_chars(text->data(), text->data() + text->size(), format.found);
  if (format.isKnown()) return {};
  return fail(unknownFormat(store.knownAs() + "/" + std::string(kFormatFile), format,
                            "use the caisson that wrote the image store, or move the store away and pull again"));
}

std::string LayerCompletion::written() const {
  JsonWriter json;
  json.beginObject().key("version").number(1).key("layer").string(layer.text());
  json.key("diff_id").string(diff_id.text()).key("record").string(record.text());
  json.key("entries").number(entries).key("bytes").number(bytes).end();
  return json.text() + "\n";
}

Result<LayerCompletion> LayerCompletion::parse(std::string_view json) {
  const auto value = JsonValue::parse(json);
  const auto digest = [&](std::string_view key) { return ContentDigest::parse(value->textAt(key).value_or("")); };
  if (value && value->integerAt("version")) {
    const FormatVersion format{.found = *value->integerAt("version")};
    if (!format.isKnown()) {
      return fail(unknownFormat("layer of an image", format,
                                "use the caisson that stored the image, or remove the image and pull it again"));
    }
  }
  if (!value || value->integerAt("version") != 1 || !digest("layer") || !digest("diff_id") || !digest("record")) {
    return fail(plainError(Stage::state, "image", "complete", "the completion record of a layer is damaged",
                           "remove the image and pull or import it again"));
  }
  return LayerCompletion{.layer = *digest("layer"),
                         .diff_id = *digest("diff_id"),
                         .record = *digest("record"),
                         .entries = static_cast<std::uint64_t>(value->integerAt("entries").value_or(0)),
                         .bytes = static_cast<std::uint64_t>(value->integerAt("bytes").value_or(0))};
}

}  // namespace caisson::image
