#include "image/index_file.h"

#include <algorithm>
#include <cerrno>

#include "base/json_writer.h"
#include "base/text.h"
#include "image/layout.h"
#include "image/reference.h"

namespace caisson::image {
namespace {

Error noSuchImage(std::string_view reference, std::string_view hint) {
  return plainError(Stage::state, "image", printable(reference), "no such image in the store", hint);
}

/// Whether the index that the entry came from has this digest and really lists the entry's manifest.
bool comesFromIndex(const sys::RootDir& store, const StoredName& entry, const ContentDigest& digest) {
  if (entry.index != digest) return false;
  const auto text = readBlob(store, digest);
  const auto index = text ? parseIndex(*text) : fail(text.error());
  return index &&
         std::ranges::any_of(index->manifests, [&](const Descriptor& d) { return d.digest == entry.manifest; });
}

/// By `sha256:...` of the manifest, or by the first digits of the configuration's digest (Docker's IMAGE ID).
Result<StoredName> findById(const sys::RootDir& store, const std::vector<StoredName>& names, std::string_view id,
                            std::string_view reference, std::string_view missing_hint) {
  const StoredName* found = nullptr;
  for (const StoredName& entry : names) {
    bool match = entry.manifest.hex() == id;
    if (!match) {
      const auto text = readBlob(store, entry.manifest);
      const auto manifest = text ? parseManifest(*text) : fail(text.error());
      match = manifest && manifest->config.digest.hex().starts_with(id);
    }
    if (!match) continue;
    if (found != nullptr && found->manifest != entry.manifest) {
      return fail(plainError(Stage::usage, "image", printable(reference), "several images have this id",
                             "give more digits, or the name"));
    }
    found = &entry;
  }
  if (found == nullptr) return fail(noSuchImage(reference, missing_hint));
  return *found;
}

}  // namespace

Result<std::vector<StoredName>> readIndex(const sys::RootDir& store) {
  std::vector<StoredName> names;
  auto text = store.readFile(kIndexFile, kMaxDocument);
  if (!text && text.error().sys_errno == ENOENT) return names;
  if (!text) return fail(text.error());
  auto index = parseIndex(*text);
  if (!index) return fail(index.error());
  for (Descriptor& entry : index->manifests) {
    StoredName stored{.media_type = entry.media_type, .manifest = entry.digest, .size = entry.size};
    const auto value = [&](std::string_view key) { return entry.annotations[std::string(key)]; };
    stored.name = value(kNameAnnotation);
    stored.index = ContentDigest::parse(value(kIndexAnnotation));
    const std::string keys = value(kSignedAnnotation);
    for (const std::string_view key : split(keys, ' '))
      if (!key.empty()) stored.signed_by.emplace_back(key);
    names.push_back(std::move(stored));
  }
  return names;
}

Result<void> checkIndexEntries(std::size_t entries) {
  if (entries <= kMaxIndexEntries) return {};
  return fail(plainError(Stage::state, "image", "store",
                         "more than " + std::to_string(kMaxIndexEntries) + " names and images",
                         "caisson image prune, or remove some"));
}

Result<void> writeIndex(const sys::RootDir& store, const std::vector<StoredName>& names) {
  if (auto checked = checkIndexEntries(names.size()); !checked) return checked;
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("schemaVersion").number(2).key("mediaType").string(kOciIndex).key("manifests").beginArray();
  for (const StoredName& entry : names) {
    json.beginObject().key("mediaType").string(entry.media_type).key("digest").string(entry.manifest.text());
    json.key("size").number(entry.size).key("annotations").beginObject();
    if (!entry.name.empty()) json.key(kNameAnnotation).string(entry.name);
    if (entry.index) json.key(kIndexAnnotation).string(entry.index->text());
    std::string keys;
    for (const std::string& key : entry.signed_by) keys += (keys.empty() ? "" : " ") + key;
    if (!keys.empty()) json.key(kSignedAnnotation).string(keys);
    json.end().end();
  }
  json.end().end();
  if (json.text().size() >= kMaxDocument) return checkIndexEntries(kMaxIndexEntries + 1);
  return store.writeFileAtomic(kIndexFile, json.text() + "\n", 0600);
}

Result<std::string> readBlob(const sys::RootDir& store, const ContentDigest& digest) {
  auto text = store.readFile(blobPath(digest), kMaxDocument);
  if (!text) return fail(text.error());
  if (ContentDigest::of(*text) != digest) {
    return fail(plainError(Stage::state, "image", digest.text(), "the stored blob does not have this digest",
                           "remove the image and pull or import it again"));
  }
  return text;
}

Result<StoredName> findImage(const sys::RootDir& store, const std::vector<StoredName>& names,
                             std::string_view reference, std::string_view missing_hint) {
  if (const auto digest = ContentDigest::parse(reference))
    return findById(store, names, digest->hex(), reference, missing_hint);
  const auto parsed = Reference::parse(reference);
  if (!parsed && !isImageId(reference)) return fail(parsed.error());
  const auto named = [&](const StoredName& entry) {
    const bool same_name = parsed->tag.empty()
                               ? entry.name == parsed->name() || entry.name.starts_with(parsed->name() + ":")
                               : entry.name == parsed->tagged();
    return same_name &&
           (!parsed->digest || entry.manifest == *parsed->digest || comesFromIndex(store, entry, *parsed->digest));
  };
  const auto found = parsed ? std::ranges::find_if(names, named) : names.end();
  if (!isImageId(reference))
    return found == names.end() ? fail(noSuchImage(reference, missing_hint)) : Result<StoredName>(*found);
  auto by_id = findById(store, names, reference, reference, missing_hint);
  if (found == names.end()) return by_id;
  // New names of this form are refused, but other programs and earlier versions write them.
  if (by_id && by_id->manifest != found->manifest) {
    return fail(plainError(Stage::usage, "image", printable(reference), "the name of one image and the id of another",
                           "give the tag (" + printable(reference) + ":latest) or the whole id (sha256:...)"));
  }
  return *found;
}

}  // namespace caisson::image
