#include "image/model.h"

#include <algorithm>

#include "base/json_value.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::size_t kMaxStrings = 4096;

Error modelError(std::string_view document, std::string_view reason) {
  return plainError(Stage::state, "image", document, reason);
}

Result<JsonValue> parseDocument(std::string_view what, std::string_view json) {
  if (json.size() > kMaxDocument) return fail(modelError(what, "larger than 4 MiB"));
  auto value = JsonValue::parse(json);
  if (!value || !value->isObject()) return fail(modelError(what, "not a JSON object, or too deep or wide"));
  return *value;
}

/// A list of strings; nothing if it has another type. Missing and null are empty lists.
std::optional<std::vector<std::string>> stringsAt(const JsonValue& object, std::string_view key) {
  std::vector<std::string> list;
  const auto value = object.find(key);
  if (!value || value->written() == "null") return list;
  if (!value->isArray()) return std::nullopt;
  for (const JsonValue& item : value->items()) {
    auto text = item.text();
    if (!text || text->find('\0') != std::string::npos || list.size() == kMaxStrings) return std::nullopt;
    list.push_back(std::move(*text));
  }
  return list;
}

std::map<std::string, std::string> textMapAt(const JsonValue& object, std::string_view key) {
  std::map<std::string, std::string> map;
  const auto value = object.find(key);
  if (!value) return map;
  for (const auto& [name, item] : value->members())
    if (auto text = item.text(); text && map.size() < kMaxStrings) map.emplace(name, std::move(*text));
  return map;
}

Platform platformOf(const JsonValue& object) {
  return {object.textAt("os").value_or(""), object.textAt("architecture").value_or(""),
          object.textAt("variant").value_or("")};
}

Result<Descriptor> parseDescriptor(const JsonValue& value, std::string_view what) {
  const auto digest = ContentDigest::parse(value.textAt("digest").value_or(""));
  const auto size = value.integerAt("size");
  if (!digest) return fail(modelError(what, "a descriptor lacks a sha256 digest"));
  if (!size || *size < 0) return fail(modelError(what, "a descriptor lacks a size"));
  Descriptor result{.media_type = value.textAt("mediaType").value_or(""),
                    .digest = *digest,
                    .size = static_cast<std::uint64_t>(*size),
                    .annotations = textMapAt(value, "annotations")};
  if (const auto platform = value.find("platform"); platform && platform->isObject()) {
    result.platform = platformOf(*platform);
  }
  return result;
}

bool isLayerType(std::string_view type) {
  return type.starts_with(kOciLayer) || type.starts_with("application/vnd.oci.image.layer.nondistributable.v1.tar") ||
         type.starts_with(kDockerLayer);
}

}  // namespace

std::string Platform::text() const { return os + "/" + architecture + (variant.empty() ? "" : "/" + variant); }

Platform hostPlatform() {
#if defined(__aarch64__)
  return {"linux", "arm64", "v8"};
#elif defined(__x86_64__)
  return {"linux", "amd64", ""};
#elif defined(__riscv)
  return {"linux", "riscv64", ""};
#else
  return {"linux", "unknown", ""};
#endif
}

std::optional<Platform> parsePlatform(std::string_view text) {
  const auto parts = split(text, '/');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  return Platform{std::string(parts[0]), std::string(parts[1]), parts.size() == 3 ? std::string(parts[2]) : ""};
}

bool isIndexType(std::string_view media_type) { return media_type == kOciIndex || media_type == kDockerList; }

std::string documentType(std::string_view json) {
  const auto value = JsonValue::parse(json);
  if (!value || !value->isObject()) return "";
  const bool lists = value->find("manifests").has_value();
  const bool layered = value->find("layers").has_value() && value->find("config").has_value();
  // A document that is both could be read as an index by one tool and as a manifest by another.
  if (lists == layered) return "";
  const std::string stated = value->textAt("mediaType").value_or("");
  if (stated.empty()) return std::string(lists ? kOciIndex : kOciManifest);
  if (isIndexType(stated) != lists) return "";
  return stated;
}

Result<Manifest> parseManifest(std::string_view json) {
  const auto value = parseDocument("manifest", json);
  if (!value) return fail(value.error());
  Manifest result{.media_type = documentType(json), .config = {.digest = ContentDigest::of("")}};
  if (value->integerAt("schemaVersion") != 2) return fail(modelError("manifest", "schema version 2 is expected"));
  if (result.media_type != kOciManifest && result.media_type != kDockerManifest) {
    return fail(modelError("manifest", "not an image manifest"));
  }
  const auto config = value->find("config");
  auto parsed = parseDescriptor(config.value_or(*value), "manifest config");
  if (!parsed) return fail(parsed.error());
  result.config = std::move(*parsed);
  if (result.config.media_type != kOciConfig && result.config.media_type != kDockerConfig) {
    return fail(modelError("manifest", "not a container image: config type " + printable(result.config.media_type)));
  }
  for (const JsonValue& item : value->find("layers")->items()) {
    auto layer = parseDescriptor(item, "manifest layer");
    if (!layer) return fail(layer.error());
    if (!isLayerType(layer->media_type)) {
      return fail(modelError("manifest", "unknown layer type " + printable(layer->media_type)));
    }
    if (result.layers.size() == kMaxLayers) return fail(modelError("manifest", "more than 256 layers"));
    result.layers.push_back(std::move(*layer));
  }
  return result;
}

Result<Index> parseIndex(std::string_view json) {
  const auto value = parseDocument("index", json);
  if (!value) return fail(value.error());
  Index result{.media_type = documentType(json)};
  if (!isIndexType(result.media_type)) return fail(modelError("index", "not an image index"));
  for (const JsonValue& item : value->find("manifests")->items()) {
    auto entry = parseDescriptor(item, "index");
    if (!entry) return fail(entry.error());
    if (result.manifests.size() == kMaxIndexEntries) return fail(modelError("index", "more than 4096 entries"));
    result.manifests.push_back(std::move(*entry));
  }
  return result;
}

Result<ImageConfig> parseConfig(std::string_view json) {
  const auto value = parseDocument("image config", json);
  if (!value) return fail(value.error());
  ImageConfig result{.platform = platformOf(*value), .created = value->textAt("created").value_or("")};
  const auto rootfs = value->find("rootfs");
  const auto diff_ids = rootfs ? stringsAt(*rootfs, "diff_ids") : std::nullopt;
  if (!diff_ids || diff_ids->size() > kMaxLayers) return fail(modelError("image config", "rootfs.diff_ids is missing"));
  for (const std::string& text : *diff_ids) {
    const auto digest = ContentDigest::parse(text);
    if (!digest) return fail(modelError("image config", "rootfs.diff_ids: invalid digest"));
    result.diff_ids.push_back(*digest);
  }
  const auto config = value->find("config");
  if (!config || !config->isObject()) return result;
  auto env = stringsAt(*config, "Env");
  auto entrypoint = stringsAt(*config, "Entrypoint");
  auto cmd = stringsAt(*config, "Cmd");
  if (!env || !entrypoint || !cmd)
    return fail(modelError("image config", "Env, Entrypoint or Cmd is not a list of strings"));
  result.env = std::move(*env);
  result.entrypoint = std::move(*entrypoint);
  result.cmd = std::move(*cmd);
  result.working_dir = config->textAt("WorkingDir").value_or("");
  result.user = config->textAt("User").value_or("");
  result.labels = textMapAt(*config, "Labels");
  return result;
}

Result<Descriptor> selectPlatform(const Index& index, const Platform& wanted) {
  const Descriptor* best = nullptr;
  std::vector<std::string> offered;
  for (const Descriptor& entry : index.manifests) {
    if (!entry.platform) {
      if (index.manifests.size() == 1) return entry;
      continue;
    }
    const Platform& platform = *entry.platform;
    if (platform.os != "unknown" && offered.size() < 16) offered.push_back(platform.text());
    if (platform.os != wanted.os || platform.architecture != wanted.architecture) continue;
    if (platform.variant == wanted.variant) return entry;
    if ((platform.variant.empty() || wanted.variant.empty()) && best == nullptr) best = &entry;
  }
  if (best != nullptr) return *best;
  return fail(plainError(Stage::state, "image", wanted.text(), "the image is not available for this platform",
                         offered.empty() ? "" : "available: " + joined(offered)));
}

}  // namespace caisson::image
