#include "image_store/store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "audit/log.h"
#include "base/text.h"
#include "sys/state_home.h"

namespace caisson::image {
namespace {

constexpr int kLockRetryMs = 20;
constexpr std::string_view kLayoutText = "{\"imageLayoutVersion\":\"1.0.0\"}\n";

/// Puts the change on record before it is made.
Result<void> recordChange(std::string_view action, const StoredName& entry) {
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  return log->append(
      {audit::EventType::image_changed,
       audit::Severity::info,
       {},
       audit::Fields().text("action", action).text("name", entry.name).text("digest", entry.manifest.text())});
}

}  // namespace

Result<void> refuseReserved(const Reference& reference) {
  if (reference.name() + ":" != kBuildCache) return {};
  return fail(plainError(Stage::usage, "image", reference.familiar(), "the name is reserved for the cache of builds",
                         "use another name"));
}

Result<void> refuseIdName(const Reference& reference) {
  if (!reference.looksLikeId()) return {};
  return fail(plainError(Stage::usage, "image", reference.familiar(),
                         "the name looks like an image id: it has only hexadecimal digits",
                         "use another name, or one with a host: localhost/NAME"));
}

Result<StoreLock> StoreLock::take(const sys::RootDir& store, std::string_view file, Kind kind,
                                  std::chrono::milliseconds timeout) {
  auto lock = store.openFile(file, {.flags = O_RDWR | O_CREAT});
  if (!lock) return fail(lock.error());
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (::flock(lock->get(), (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(sysError(Stage::state, "flock", file, errno));
    if (std::chrono::steady_clock::now() >= deadline) {
      return fail(plainError(Stage::state, "image", "store", "another process is using the image store",
                             "wait until its import, pull or build is finished, then try again"));
    }
    ::poll(nullptr, 0, kLockRetryMs);
  }
  return StoreLock(std::move(*lock));
}

Result<Store> Store::open() {
  std::string path = storePath();
  if (path.empty()) return fail(plainError(Stage::state, "image", "store", "no home directory", "set CAISSON_HOME"));
  auto directory = sys::openStateDirectory(std::string(kStoreDirectory));
  if (!directory) return fail(directory.error());
  auto root = sys::RootDir::adopt(std::move(*directory), {.known_as = path});
  if (!root) return fail(root.error());
  if (auto known = checkStoreFormat(*root); !known) return fail(known.error());
  Store store(std::move(*root), std::move(path));
  for (const char* name : {"blobs/sha256", "layers", "tmp", "partial"})
    if (auto made = store.root_.makeDirs(name, 0700); !made) return fail(made.error());
  if (auto begun = store.writeLayoutFiles(); !begun) return fail(begun.error());
  if (auto removed = store.removeLeftovers(); !removed) return fail(removed.error());
  return store;
}

/// The files that make the directory an OCI image layout, for other tools.
Result<void> Store::writeLayoutFiles() const {
  if (root_.stat("oci-layout")) return {};
  auto lock = StoreLock::take(root_, kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!lock) return fail(lock.error());
  if (!root_.stat(kIndexFile)) {
    if (auto written = writeIndex(root_, {}); !written) return written;
  }
  return root_.writeFileAtomic("oci-layout", kLayoutText, 0600);
}

Result<void> Store::removeLeftovers() const {
  auto entries = root_.list("tmp");
  if (!entries) return fail(entries.error());
  if (entries->empty()) return {};
  // Under the lock no process is between creating a directory and locking it.
  auto lock = StoreLock::take(root_, kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!lock) return fail(lock.error());
  for (const sys::DirectoryEntry& entry : *entries) {
    const std::string path = "tmp/" + entry.name;
    auto directory = root_.openFile(path, {.types = {sys::FileType::directory, sys::FileType::regular}});
    if (directory && ::flock(directory->get(), LOCK_EX | LOCK_NB) != 0) continue;  // its process lives
    if (auto removed = root_.removeTree(path); !removed) return removed;
  }
  return {};
}

bool Store::hasBlob(const ContentDigest& digest) const {
  const auto info = root_.stat(blobPath(digest));
  return info && info->type == sys::FileType::regular;
}

std::optional<ContentDigest> Store::unpacked(const ContentDigest& layer) const {
  const auto text = root_.readFile(layerPath(layer) + std::string(kLayerComplete), kMaxDocument);
  const auto record = text ? LayerCompletion::parse(*text) : fail(text.error());
  if (!record || record->layer != layer) return std::nullopt;
  return record->diff_id;
}

Result<sys::Fd> Store::openBlob(const ContentDigest& digest) const { return root_.openFile(blobPath(digest), {}); }

Result<std::uint64_t> Store::usage() const {
  std::uint64_t bytes = 0;
  auto blobs = root_.list("blobs/sha256");
  auto layers = root_.list("layers");
  if (!blobs || !layers) return fail(blobs ? layers.error() : blobs.error());
  for (const auto& blob : *blobs)
    if (const auto info = root_.stat(std::string(kBlobs) + blob.name)) bytes += info->size;
  for (const auto& layer : *layers) {
    const auto text = root_.readFile(std::string(kLayers) + layer.name + std::string(kLayerComplete), kMaxDocument);
    const auto record = text ? LayerCompletion::parse(*text) : fail(text.error());
    if (record) bytes += record->charged();
  }
  return bytes;
}

Result<void> Store::addNames(const std::vector<StoredName>& added) const {
  auto lock = StoreLock::take(root_, kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!lock) return fail(lock.error());
  auto list = names();
  if (!list) return fail(list.error());
  for (const StoredName& entry : added) {
    std::erase_if(*list,
                  [&](const StoredName& old) { return old.name == entry.name && old.name.starts_with(kBuildCache); });
    for (StoredName& old : *list)
      if (!entry.name.empty() && old.name == entry.name) old.name.clear();
    list->push_back(entry);
  }
  // An entry without a name is needed only if no other entry has its manifest.
  std::vector<StoredName> kept;
  for (const StoredName& entry : *list) {
    const auto other = [&](const StoredName& one) {
      return one.manifest == entry.manifest && (!one.name.empty() || &one < &entry);
    };
    if (!entry.name.empty() || std::ranges::none_of(*list, other)) kept.push_back(entry);
  }
  if (auto checked = checkIndexEntries(kept.size()); !checked) return checked;
  for (const StoredName& entry : added)
    if (auto recorded = recordChange("add", entry); !recorded) return recorded;
  return writeIndex(root_, kept);
}

Result<std::size_t> Store::removeNames(const std::function<bool(const StoredName&)>& remove,
                                       const std::set<ContentDigest>& kept) const {
  auto lock = StoreLock::take(root_, kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!lock) return fail(lock.error());
  auto list = names();
  if (!list) return fail(list.error());
  std::vector<StoredName> gone;
  std::ranges::copy_if(*list, std::back_inserter(gone), remove);
  for (const StoredName& entry : gone)
    if (auto recorded = recordChange("remove", entry); !recorded) return fail(recorded.error());
  const std::size_t count = std::erase_if(*list, remove);
  if (count == 0) return count;
  for (StoredName& entry : gone) {
    const auto same = [&](const StoredName& one) { return one.manifest == entry.manifest; };
    if (!kept.contains(entry.manifest) || std::ranges::any_of(*list, same)) continue;
    entry.name.clear();
    list->push_back(entry);
  }
  if (auto written = writeIndex(root_, *list); !written) return fail(written.error());
  return count;
}

Result<std::set<std::string>> Store::neededHashes() const {
  std::set<std::string> needed;
  const auto list = names();
  if (!list) return fail(list.error());
  for (const StoredName& entry : *list) {
    needed.insert(entry.manifest.hex());
    if (entry.index) needed.insert(entry.index->hex());
    const auto text = readBlob(root_, entry.manifest);
    const auto manifest = text ? parseManifest(*text) : fail(text.error());
    if (!manifest) {
      // Its layers are unknown: removing anything could destroy an image that is repairable.
      Error error = manifest.error();
      error.hint = "caisson image remove " + (entry.name.empty() ? entry.manifest.text() : entry.name);
      return fail(std::move(error));
    }
    needed.insert(manifest->config.digest.hex());
    for (const Descriptor& layer : manifest->layers) needed.insert(layer.digest.hex());
  }
  return needed;
}

void Store::removeLayer(const std::string& name, Removed& removed) const {
  const std::string path = std::string(kLayers) + name;
  const auto text = root_.readFile(path + std::string(kLayerComplete), kMaxDocument);
  const auto record = text ? LayerCompletion::parse(*text) : fail(text.error());
  const auto used = root_.openFile(path + std::string(kLayerComplete), {});
  const bool unknown = !used && used.error().sys_errno != ENOENT;  // such as EMFILE
  if (unknown || (used && ::flock(used->get(), LOCK_EX | LOCK_NB) != 0)) {
    removed.in_use.push_back(name.substr(0, 12));
    return;
  }
  // First into tmp/: a layer that is half removed must not look complete.
  const std::string doomed = "tmp/removed-" + name;
  (void)root_.removeTree(doomed);
  if (!root_.rename(path, doomed, false) || !root_.removeTree(doomed)) return;
  ++removed.layers;
  removed.bytes += record ? record->bytes : 0;
}

std::uint64_t Store::trimPartial(std::uint64_t bytes, const std::set<std::string>& wanted) const {
  const auto entries = root_.list("partial");
  if (!entries) return 0;
  std::vector<std::pair<std::string, sys::FileInfo>> files;
  std::uint64_t total = 0;
  for (const auto& entry : *entries) {
    const auto info = root_.stat("partial/" + entry.name);
    if (!info || wanted.contains(entry.name)) continue;
    total += info->size;
    files.emplace_back("partial/" + entry.name, *info);
  }
  std::ranges::sort(files, {}, [](const auto& file) { return file.second.modified_ns; });
  for (const auto& [path, info] : files) {
    if (total <= bytes) break;
    const auto file = root_.openFile(path, {});
    if (!file || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Another process may have completed it and begun a new one under this name.
    struct stat locked{};
    const auto named = root_.stat(path);
    if (!named || ::fstat(file->get(), &locked) != 0 || named->inode != locked.st_ino || !root_.remove(path)) continue;
    total -= std::min(total, info.size);
  }
  return total;
}

Result<StoreLock> Store::lockForRemoval() const {
  return StoreLock::take(root_, kUseLock, StoreLock::Kind::exclusive, kLockTimeout);
}

Result<Removed> Store::collectGarbage(const StoreLock& /*for_removal*/) const {
  const auto needed = neededHashes();
  if (!needed) return fail(needed.error());
  Removed removed;
  const auto layers = root_.list("layers");
  const auto blobs = root_.list("blobs/sha256");
  const auto partial = root_.list("partial");
  if (!layers || !blobs || !partial) return fail(!layers ? layers.error() : !blobs ? blobs.error() : partial.error());
  for (const auto& entry : *layers)
    if (!needed->contains(entry.name.substr(0, 64))) removeLayer(entry.name, removed);
  for (const auto& entry : *blobs) {
    if (needed->contains(entry.name)) continue;
    const std::string path = std::string(kBlobs) + entry.name;
    const auto info = root_.stat(path);
    if (!root_.removeTree(path)) continue;
    ++removed.blobs;
    removed.bytes += info ? info->size : 0;
  }
  for (const auto& entry : *partial) (void)root_.removeTree("partial/" + entry.name);
  return removed;
}

}  // namespace caisson::image
