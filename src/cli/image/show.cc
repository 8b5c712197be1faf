// Verbs of `caisson image` that print: list, inspect, verify.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>

#include "base/format.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/image/actions.h"
#include "cli/image/common.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "image/layout.h"
#include "image/reference.h"
#include "image_store/layer_record.h"
#include "image_store/progress.h"

namespace caisson::cli {
namespace {

using image::ContentDigest;
using image::Store;
using image::StoredName;

/// Bytes of the unpacked layers.
std::uint64_t unpackedBytes(const Store& store, const image::Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const image::Descriptor& layer : manifest.layers) {
    const auto text =
        store.root().readFile(image::layerPath(layer.digest) + std::string(image::kLayerComplete), image::kMaxDocument);
    const auto record = text ? image::LayerCompletion::parse(*text) : fail(text.error());
    if (record) bytes += record->bytes;
  }
  return bytes;
}

struct NameParts {
  std::string repository = "<none>", tag = "<none>";
};

NameParts partsOf(const StoredName& stored) {
  auto reference = image::Reference::parse(stored.name);
  if (!reference) return {};
  NameParts parts{.tag = reference->tag};
  reference->tag.clear();
  parts.repository = reference->familiar();
  return parts;
}

std::string listJson(const Store& store, const std::vector<StoredName>& names) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginArray();
  for (const StoredName& stored : names) {
    const auto loaded = loadImage(store, stored);
    json.beginObject().key("name").string(stored.name).key("digest").string(stored.manifest.text());
    if (loaded) {
      json.key("id").string(loaded->manifest.config.digest.text()).key("created").string(loaded->config.created);
      json.key("platform").string(loaded->config.platform.text());
      json.key("layers")
          .number(loaded->manifest.layers.size())
          .key("size")
          .number(unpackedBytes(store, loaded->manifest));
    } else {
      json.key("error").string(loaded.error().message());
    }
    json.end();
  }
  return json.end().text() + "\n";
}

std::string listTable(const Store& store, const std::vector<StoredName>& names) {
  std::vector<std::array<std::string, 5>> rows{{"REPOSITORY", "TAG", "IMAGE ID", "CREATED", "SIZE"}};
  for (const StoredName& stored : names) {
    const auto loaded = loadImage(store, stored);
    const NameParts parts = partsOf(stored);
    rows.push_back({parts.repository, parts.tag,
                    loaded ? loaded->manifest.config.digest.hex().substr(0, 12) : "damaged",
                    loaded ? safeLine(loaded->config.created.substr(0, 10)) : "",
                    loaded ? image::readableSize(unpackedBytes(store, loaded->manifest)) : ""});
  }
  std::array<std::size_t, 5> widths{};
  for (const auto& row : rows)
    for (std::size_t at = 0; at < row.size(); ++at) widths[at] = std::max(widths[at], row[at].size());
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t at = 0; at + 1 < row.size(); ++at) out += padded(row[at], widths[at] + 3);
    out += row.back() + "\n";
  }
  return out;
}

void inspectInto(JsonWriter& json, const Store& store, const LoadedImage& loaded) {
  json.beginObject().key("Id").string(loaded.manifest.config.digest.text());
  json.key("RepoTags").beginArray();
  if (!loaded.stored.name.empty()) json.string(shownImageName(loaded.stored));
  json.end().key("Digest").string(loaded.stored.manifest.text());
  if (loaded.stored.index) json.key("IndexDigest").string(loaded.stored.index->text());
  json.key("MediaType").string(loaded.stored.media_type).key("Created").string(loaded.config.created);
  json.key("Architecture").string(loaded.config.platform.architecture).key("Os").string(loaded.config.platform.os);
  json.key("Variant").string(loaded.config.platform.variant).key("Size").number(unpackedBytes(store, loaded.manifest));
  const auto document = JsonValue::parse(loaded.config_text);
  const auto config = document ? document->find("config") : std::nullopt;
  json.key("Config").raw(config ? config->written() : "{}");
  json.key("Layers").beginArray();
  for (std::size_t at = 0; at < loaded.manifest.layers.size(); ++at) {
    const image::Descriptor& layer = loaded.manifest.layers[at];
    json.beginObject()
        .key("Digest")
        .string(layer.digest.text())
        .key("DiffID")
        .string(loaded.config.diff_ids[at].text());
    json.key("MediaType").string(layer.media_type).key("Size").number(layer.size);
    json.key("Directory").string(store.path() + "/" + image::layerPath(layer.digest) + std::string(image::kLayerRoot));
    const auto report =
        store.root().readFile(image::layerPath(layer.digest) + std::string(image::kLayerReport), 64U << 20);
    json.key("Neutralised").beginArray();
    for (const std::string_view line : report ? split(*report, '\n') : std::vector<std::string_view>{}) json.raw(line);
    json.end().end();
  }
  json.end().end();
}

/// Findings of `verify`, in the order they were made.
struct Findings {
  std::vector<std::pair<std::string, std::string>> list;  ///< object, what is wrong
  void add(std::string object, std::string what) { list.emplace_back(std::move(object), std::move(what)); }
};

/// The digest of the rest of the file.
ContentDigest digestOf(const sys::Fd& file) {
  Sha256 hash;
  std::vector<char> buffer(1U << 20);
  for (ssize_t got = 0; (got = ::read(file.get(), buffer.data(), buffer.size())) > 0;)
    hash.add(buffer.data(), static_cast<std::size_t>(got));
  return ContentDigest::from(hash.finish());
}

void verifyBlob(const Store& store, const image::Descriptor& blob, Findings& findings) {
  const auto file = store.openBlob(blob.digest);
  if (!file) return findings.add(blob.digest.text(), "the blob is missing");
  if (digestOf(*file) != blob.digest) findings.add(blob.digest.text(), "the blob has another content");
}

void verifyUnpacked(const Store& store, const ContentDigest& layer, const ContentDigest& diff_id, Findings& findings) {
  const std::string path = image::layerPath(layer);
  const auto text = store.root().readFile(path + std::string(image::kLayerComplete), image::kMaxDocument);
  const auto complete = text ? image::LayerCompletion::parse(*text) : fail(text.error());
  if (!complete || complete->layer != layer || complete->diff_id != diff_id) {
    return findings.add(layer.text(), "the completion record is missing or belongs to another layer");
  }
  const auto record = store.root().openFile(path + std::string(image::kLayerRecord), {});
  if (!record || digestOf(*record) != complete->record || ::lseek(record->get(), 0, SEEK_SET) != 0)
    return findings.add(layer.text(), "the record of files was changed");
  const auto next_part = [&]() -> Result<std::string> {
    std::string part(256U << 10, '\0');
    const ssize_t got = ::read(record->get(), part.data(), part.size());
    if (got < 0) return fail(sysError(Stage::state, "read", layer.text(), errno));
    part.resize(static_cast<std::size_t>(got));
    return part;
  };
  const auto root = store.root().enter(path + std::string(image::kLayerRoot));
  if (!root) return findings.add(layer.text(), "the directory is missing");
  const auto problems = image::verifyLayer(*root, next_part);
  if (!problems) return findings.add(layer.text(), problems.error().message());
  for (const image::VerifyProblem& problem : *problems)
    findings.add(layer.hex().substr(0, 12) + "/" + problem.path, problem.what);
}

void verifyImage(const Store& store, const StoredName& stored, std::set<ContentDigest>& seen, Findings& findings) {
  const auto loaded = loadImage(store, stored);
  if (!loaded) return findings.add(shownImageName(stored), loaded.error().message());
  if (loaded->config.diff_ids.size() != loaded->manifest.layers.size()) {
    return findings.add(shownImageName(stored), "manifest and configuration list different layers");
  }
  for (std::size_t at = 0; at < loaded->manifest.layers.size(); ++at) {
    const image::Descriptor& layer = loaded->manifest.layers[at];
    if (!seen.insert(layer.digest).second) continue;
    verifyBlob(store, layer, findings);
    verifyUnpacked(store, layer.digest, loaded->config.diff_ids[at], findings);
  }
}

}  // namespace

int listAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 0, 0); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  auto names = store->names();
  if (!names) return printError(names.error());
  std::erase_if(*names, [](const StoredName& stored) { return stored.name.starts_with(image::kBuildCache); });
  if (arguments.has(kImageJson)) return print(listJson(*store, *names));
  if (!arguments.has(kImageIdsOnly)) return print(listTable(*store, *names));
  std::string out;
  for (const StoredName& stored : *names)
    if (const auto loaded = loadImage(*store, stored)) out += loaded->manifest.config.digest.hex().substr(0, 12) + "\n";
  return print(out);
}

int inspectAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 1000); !checked) return printError(checked.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  JsonWriter json;
  json.beginArray();
  for (const std::string_view reference : arguments.operands) {
    const auto loaded = loadImage(*store, reference);
    if (!loaded) return printError(loaded.error());
    if (loaded->config.diff_ids.size() != loaded->manifest.layers.size())
      return printError(usageError(reference, "the image is damaged"));
    inspectInto(json, *store, *loaded);
  }
  const auto whole = JsonValue::parse(json.end().text());
  return print((whole ? whole->indented() : json.text()) + "\n");
}

int verifyAction(const Arguments& arguments) {
  const auto store = Store::open();
  if (!store) return printError(store.error());
  const auto names = store->names();
  if (!names) return printError(names.error());
  std::vector<StoredName> chosen = *names;
  if (!arguments.operands.empty()) chosen.clear();
  for (const std::string_view reference : arguments.operands) {
    const auto found = image::findImage(store->root(), *names, reference);
    if (!found) return printError(found.error());
    chosen.push_back(*found);
  }
  Findings findings;
  std::set<ContentDigest> seen;
  for (const StoredName& stored : chosen) verifyImage(*store, stored, seen, findings);
  std::string out;
  if (arguments.has(kImageJson)) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.beginObject()
        .key("images")
        .number(chosen.size())
        .key("layers")
        .number(seen.size())
        .key("problems")
        .beginArray();
    for (const auto& [object, what] : findings.list)
      json.beginObject().key("object").string(object).key("what").string(what).end();
    out = json.end().end().text() + "\n";
  } else {
    for (const auto& [object, what] : findings.list) out += safeLine(object) + ": " + safeLine(what) + "\n";
    if (findings.list.empty()) out = format("{} images, {} layers: verified\n", chosen.size(), seen.size());
  }
  const int status = print(out);
  return status != 0 ? status : findings.list.empty() ? 0 : 1;
}

}  // namespace caisson::cli
