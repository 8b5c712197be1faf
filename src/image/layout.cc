#include "image/layout.h"

#include "base/json_value.h"
#include "base/json_writer.h"
#include "sys/state_home.h"

namespace caisson::image {

std::string storePath() {
  const std::string home = sys::stateHome();
  return home.empty() ? "" : home + "/" + std::string(kStoreDirectory);
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
