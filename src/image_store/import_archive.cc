// Image archives: a tar of an OCI layout, or `docker save`'s format. The confined decoder reads them.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/json_value.h"
#include "base/text.h"
#include "image/reference.h"
#include "image_store/decoder.h"
#include "image_store/import_sources.h"
#include "image_store/layer_writer.h"

namespace caisson::image {
namespace {

constexpr std::size_t kMaxArchiveFiles = 20'000;
constexpr std::size_t kMaxArchiveText = 16U << 20;  // names and link targets, which are kept in memory
constexpr int kMaxAliases = 8;

/// The name without `./`; "" for one that leads elsewhere.
std::string plainName(std::string_view name) {
  std::string result;
  for (const std::string_view part : split(name, '/')) {
    if (part == ".") continue;
    if (part == "..") return "";
    result.append(result.empty() ? "" : "/").append(part);
  }
  return result;
}

bool beginsWithHash(std::string_view name) {
  const auto hexadecimal = [](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); };
  return name.size() >= 64 && std::ranges::all_of(name.substr(0, 64), hexadecimal) &&
         (name.size() == 64 || name[64] == '.' || name[64] == '/');
}

/// The files of an archive: their blobs, and the links between them.
struct ArchiveFiles {
  std::map<std::string, ContentDigest> blobs;
  std::map<std::string, std::string> aliases;

  [[nodiscard]] Result<ContentDigest> find(std::string name) const {
    for (int step = 0; step < kMaxAliases; ++step) {
      if (const auto blob = blobs.find(name); blob != blobs.end()) return blob->second;
      const auto alias = aliases.find(name);
      if (alias == aliases.end()) break;
      name = alias->second;
    }
    return fail(plainError(Stage::state, "import", printable(name), "the archive lacks this file"));
  }
};

/// The target of a link in the archive: hard links count from the root, others from the link's directory. `docker save`
/// writes `ID/layer.tar -> ../OTHER/layer.tar`.
std::string aliasTarget(const ArchiveEntry& entry, const std::string& name) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string_view path) {
    for (const std::string_view part : split(path, '/')) {
      if (part == ".." && !parts.empty()) parts.pop_back();
      if (part != ".." && part != ".") parts.emplace_back(part);
    }
  };
  if (entry.kind == EntryKind::link)
    add(name.substr(0, name.find_last_of('/') == std::string::npos ? 0 : name.find_last_of('/')));
  add(entry.target);
  return joined(parts, "/");
}

Result<ArchiveFiles> stageFiles(Transaction& transaction, int file, Progress& progress) {
  auto decoder = Decoder::start(file, DecodeMode::data, transaction.room() + (1U << 30));
  if (!decoder) return fail(decoder.error());
  ArchiveFiles files;
  std::optional<StagedBlob> blob;
  std::string name;
  std::uint64_t total = 0, size = 0;
  std::size_t count = 0, text = 0;
  const std::size_t step = progress.begin("reading", 0);
  while (true) {
    auto frame = decoder->next();
    if (!frame) return fail(frame.error());
    if (!*frame) break;
    if ((*frame)->type == FrameType::entry) {
      const auto entry = ArchiveEntry::decode((*frame)->body);
      if (!entry) return fail(entry.error());
      if (++count > kMaxArchiveFiles) return fail(plainError(Stage::state, "import", "archive", "too many files"));
      text += entry->name.size() + entry->target.size();
      if (text > kMaxArchiveText)
        return fail(plainError(Stage::state, "import", "archive", "the names of its files take more than 16 MiB"));
      name = plainName(entry->name);
      if (entry->kind == EntryKind::link || entry->kind == EntryKind::hard_link)
        files.aliases[name] = aliasTarget(*entry, name);
      if (entry->kind != EntryKind::file || name.empty()) continue;
      auto created = transaction.newBlob();
      if (!created) return fail(created.error());
      blob.emplace(std::move(*created));
      size = entry->size;
    } else if ((*frame)->type == FrameType::data && blob) {
      // Blobs have no holes.
      if ((*frame)->value != blob->size())
        return fail(plainError(Stage::state, "import", printable(name), "a sparse file in an image archive"));
      if (auto written = blob->write((*frame)->body); !written) return fail(written.error());
      progress.advance(step, total += (*frame)->body.size());
    } else if ((*frame)->type == FrameType::end_of_entry && blob) {
      if (blob->size() != size)
        return fail(
            plainError(Stage::state, "import", printable(name), "the data does not match the size of the entry"));
      std::optional<ContentDigest> expected;
      if (name.starts_with(kBlobs)) expected = ContentDigest::parse("sha256:" + name.substr(kBlobs.size()));
      auto digest = transaction.add(std::move(*blob), expected);
      blob.reset();
      if (!digest) return fail(digest.error());
      files.blobs.insert_or_assign(name, *digest);
    }
  }
  progress.end(step, readableSize(total));
  return files;
}

/// A layer of `docker save`: uncompressed as a rule, but other tools compress it.
Result<Descriptor> describeDockerLayer(const Transaction& transaction, const ContentDigest& digest) {
  const auto file = transaction.openBlob(digest);
  if (!file) return fail(file.error());
  unsigned char magic[4] = {};
  const ssize_t got = ::pread(file->get(), magic, sizeof(magic), 0);
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  if (got < 0 || size < 0) return fail(sysError(Stage::state, "read", digest.text(), errno));
  std::string type(kDockerLayer);
  if (magic[0] == 0x1f && magic[1] == 0x8b) type += ".gzip";
  if (magic[0] == 0x28 && magic[1] == 0xb5) type += ".zstd";
  return Descriptor{.media_type = type, .digest = digest, .size = static_cast<std::uint64_t>(size)};
}

Result<OfferedImage> offerDockerImage(Transaction& transaction, const ArchiveFiles& files, const JsonValue& item) {
  const auto config = files.find(plainName(item.textAt("Config").value_or("")));
  if (!config) return fail(config.error());
  const auto config_text = transaction.readText(*config);
  if (!config_text) return fail(config_text.error());
  std::vector<Descriptor> layers;
  const auto names = item.find("Layers");
  for (const JsonValue& one : names ? names->items() : std::vector<JsonValue>{}) {
    const auto digest = files.find(plainName(one.text().value_or("")));
    if (!digest) return fail(digest.error());
    auto layer = describeDockerLayer(transaction, *digest);
    if (!layer) return fail(layer.error());
    if (layers.size() == kMaxLayers)
      return fail(plainError(Stage::state, "import", "manifest.json", "more than 256 layers"));
    layers.push_back(std::move(*layer));
  }
  const auto manifest = transaction.addText(writeManifest(
      {.media_type = std::string(kDockerConfig), .digest = *config, .size = config_text->size()}, layers, true));
  if (!manifest) return fail(manifest.error());
  OfferedImage offer{.digest = *manifest};
  const auto tags = item.find("RepoTags");
  for (const JsonValue& tag : tags ? tags->items() : std::vector<JsonValue>{}) {
    const auto reference = Reference::parse(tag.text().value_or(""));
    if (!reference) return fail(reference.error());
    // The archive cannot vouch for a digest, and the name without it would be another image's.
    if (reference->digest)
      return fail(plainError(Stage::state, "import", printable(tag.text().value_or("")),
                             "a name in the archive has a digest", "give a name after the path"));
    if (offer.names.size() == kMaxOfferedNames)
      return fail(plainError(Stage::state, "import", "manifest.json", "too many names of an image"));
    offer.names.push_back(reference->tagged());
  }
  return offer;
}

}  // namespace

Result<ArchiveType> detectArchive(int file) {
  auto decoder = Decoder::start(file, DecodeMode::names, LayerLimits{}.bytes);
  if (!decoder) return fail(decoder.error());
  bool listed = false;
  while (true) {
    const auto frame = decoder->next();
    if (!frame) return fail(frame.error());
    if (!*frame) break;
    if ((*frame)->type != FrameType::entry) continue;
    const auto entry = ArchiveEntry::decode((*frame)->body);
    if (!entry) return fail(entry.error());
    const std::string name = plainName(entry->name);
    if (name == "oci-layout" || name.starts_with(kBlobs) || beginsWithHash(name)) return ArchiveType::image;
    listed = listed || name == kIndexFile || name == "manifest.json";
    const bool open = name.empty() || name == kIndexFile || name == "manifest.json" || name == "repositories" ||
                      name == "blobs" || name == "blobs/sha256";
    if (!open) return ArchiveType::root;
  }
  return listed ? ArchiveType::image : ArchiveType::root;
}

Result<std::vector<OfferedImage>> offeredByLayout(std::string_view index_json, std::string_view origin) {
  const auto index = parseIndex(index_json);
  if (!index) return fail(index.error());
  std::vector<OfferedImage> offers;
  for (const Descriptor& entry : index->manifests) {
    OfferedImage offer{.digest = entry.digest};
    const auto annotation = [&](const std::string& key) {
      const auto found = entry.annotations.find(key);
      return found == entry.annotations.end() ? std::string() : found->second;
    };
    std::string name = annotation("io.containerd.image.name");
    if (name.empty()) name = annotation(std::string(kNameAnnotation));
    // Most tools write only the tag.
    if (!name.empty() && name.find_first_of("/:") == std::string::npos) name = lowered(origin) + ":" + name;
    const auto reference = Reference::parse(name);
    if (reference && reference->digest && *reference->digest != entry.digest)
      return fail(plainError(Stage::state, "import", printable(name), "the image of this name has another digest",
                             "give a name after the path"));
    if (reference && !reference->digest) offer.names.push_back(reference->tagged());
    const auto same = std::ranges::find(offers, offer.digest, &OfferedImage::digest);
    if (same == offers.end()) {
      offers.push_back(std::move(offer));
    } else {
      same->names.insert(same->names.end(), offer.names.begin(), offer.names.end());
    }
  }
  return offers;
}

Result<std::vector<OfferedImage>> readImageArchive(Transaction& transaction, int file, std::string_view origin,
                                                   Progress& progress) {
  const auto files = stageFiles(transaction, file, progress);
  if (!files) return fail(files.error());
  const auto textOf = [&](const char* name) -> Result<std::string> {
    const auto digest = files->find(name);
    return digest ? transaction.readText(*digest) : fail(digest.error());
  };
  if (files->blobs.contains("oci-layout") && files->blobs.contains(std::string(kIndexFile))) {
    const auto index = textOf("index.json");
    return index ? offeredByLayout(*index, origin) : fail(index.error());
  }
  const auto text = textOf("manifest.json");
  if (!text) return fail(text.error());
  const auto list = JsonValue::parse(*text);
  if (!list || !list->isArray())
    return fail(plainError(Stage::state, "import", "manifest.json", "not a list of images"));
  std::vector<OfferedImage> offers;
  for (const JsonValue& item : list->items()) {
    auto offer = offerDockerImage(transaction, *files, item);
    if (!offer) return fail(offer.error());
    if (offers.size() == kMaxLayers)
      return fail(plainError(Stage::state, "import", "manifest.json", "too many images"));
    offers.push_back(std::move(*offer));
  }
  return offers;
}

}  // namespace caisson::image
