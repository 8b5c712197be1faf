#include "image_store/build/draft.h"

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "image_store/import_sources.h"

namespace caisson::image {

using Json = nlohmann::ordered_json;

struct ImageDraft::Document {
  Json json;
  /// The part that applies to containers.
  Json& config() {
    if (!json["config"].is_object()) json["config"] = Json::object();
    return json["config"];
  }
};

namespace {

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string buildTime() {
  std::time_t now = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0') now = std::atoll(epoch);
  return utcText(now);
}

ImageDraft::ImageDraft() : document_(std::make_unique<Document>()) {}
ImageDraft::~ImageDraft() = default;
ImageDraft::ImageDraft(ImageDraft&&) noexcept = default;
ImageDraft& ImageDraft::operator=(ImageDraft&&) noexcept = default;
ImageDraft::ImageDraft(const ImageDraft& other)
    : document_(std::make_unique<Document>(*other.document_)), layers_(other.layers_) {}
ImageDraft& ImageDraft::operator=(const ImageDraft& other) {
  if (this != &other) *this = ImageDraft(other);
  return *this;
}

ImageDraft ImageDraft::scratch(const Platform& platform) {
  ImageDraft draft;
  Json& json = draft.document_->json;
  json["architecture"] = platform.architecture;
  if (!platform.variant.empty()) json["variant"] = platform.variant;
  json["os"] = platform.os;
  json["config"] = Json::object();
  json["rootfs"] = {{"type", "layers"}, {"diff_ids", Json::array()}};
  json["history"] = Json::array();
  return draft;
}

Result<ImageDraft> ImageDraft::from(const Manifest& manifest, std::string_view config_text) {
  ImageDraft draft;
  draft.document_->json = Json::parse(config_text, nullptr, false);
  Json& json = draft.document_->json;
  if (!json.is_object() || !json["rootfs"].is_object() || !json["rootfs"]["diff_ids"].is_array()) {
    return fail(plainError(Stage::state, "build", "image config", "not a container image"));
  }
  if (!json["history"].is_array()) json["history"] = Json::array();
  draft.layers_ = manifest.layers;
  for (Descriptor& layer : draft.layers_) {
    // The new manifest is OCI's; Docker's types have the same content.
    const bool gzip = layer.media_type.ends_with("gzip");
    layer.media_type = std::string(kOciLayer) + (gzip ? "+gzip" : layer.media_type.ends_with("zstd") ? "+zstd" : "");
  }
  return draft;
}

void ImageDraft::addLayer(const Descriptor& layer, const ContentDigest& diff_id, std::string_view created_by) {
  layers_.push_back(layer);
  Json& json = document_->json;
  json["rootfs"]["diff_ids"].push_back(diff_id.text());
  json["history"].push_back({{"created", buildTime()}, {"created_by", std::string(created_by)}});
}

void ImageDraft::setEnv(const std::string& key, const std::string& value) {
  Json& env = document_->config()["Env"];
  if (!env.is_array()) env = Json::array();
  for (Json& item : env) {
    if (!item.is_string() || !item.get_ref<const std::string&>().starts_with(key + "=")) continue;
    item = key + "=" + value;
    return;
  }
  env.push_back(key + "=" + value);
}

void ImageDraft::setList(const std::string& member, const std::vector<std::string>& words) {
  document_->config()[member] = words;
}
void ImageDraft::setText(const std::string& member, const std::string& value) { document_->config()[member] = value; }

void ImageDraft::setLabel(const std::string& key, const std::string& value) {
  Json& labels = document_->config()["Labels"];
  if (!labels.is_object()) labels = Json::object();
  labels[key] = value;
}

void ImageDraft::exposePort(const std::string& port) {
  Json& ports = document_->config()["ExposedPorts"];
  if (!ports.is_object()) ports = Json::object();
  ports[port] = Json::object();
}

Variables ImageDraft::environment() const {
  Variables variables;
  const Json& env = document_->config()["Env"];
  if (!env.is_array()) return variables;
  for (const Json& item : env) {
    if (!item.is_string()) continue;
    const auto& text = item.get_ref<const std::string&>();
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

std::string ImageDraft::text(const std::string& member) const {
  const Json& value = document_->config()[member];
  return value.is_string() ? value.get<std::string>() : "";
}

std::string ImageDraft::identity() const {
  const Json& json = document_->json;
  // By blobs, whose digests caisson computed itself: a decoder that a layer took over could report another DiffID.
  Json layers = Json::array();
  for (const Descriptor& layer : layers_) layers.push_back(layer.digest.text());
  Json seen = {std::move(layers), document_->config(), json.value("os", ""), json.value("architecture", "")};
  return ContentDigest::of(dumped(seen)).hex();
}

Result<StoredName> ImageDraft::store(Transaction& transaction) const {
  Json json = document_->json;
  json["created"] = buildTime();
  const std::string config = dumped(json);
  const auto config_digest = transaction.addText(config);
  if (!config_digest) return fail(config_digest.error());
  const std::string manifest = writeManifest(
      {.media_type = std::string(kOciConfig), .digest = *config_digest, .size = config.size()}, layers_, false);
  const auto digest = transaction.addText(manifest);
  if (!digest) return fail(digest.error());
  transaction.need(*config_digest);
  transaction.need(*digest);
  for (const Descriptor& layer : layers_) transaction.need(layer.digest);
  return StoredName{.media_type = std::string(kOciManifest), .manifest = *digest, .size = manifest.size()};
}

}  // namespace caisson::image
