#include "image_store/transaction.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "sys/remove_tree.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxFloor = 1ULL << 30;  // of the disk, or a twentieth of it: as for sandboxes

Error quotaUsedUp(std::string_view object) {
  return plainError(Stage::state, "image", object, "the quota of the image store is used up",
                    "caisson image prune, or raise images.quota in the configuration");
}

}  // namespace

Result<void> StagedBlob::write(std::string_view bytes) {
  if (bytes.size() > limit_ - std::min(limit_, size_)) {
    return fail(plainError(Stage::state, "image", "blob",
                           "larger than its stated size, than the quota of the image store leaves, or than the disk "
                           "has room for",
                           "caisson image prune, or raise images.quota in the configuration"));
  }
  hash_.add(bytes);
  size_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(sysError(Stage::state, "write", "image store", errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<Transaction> Transaction::begin(const Store& store, std::uint64_t quota) {
  auto lock = StoreLock::take(store.root(), kUseLock, StoreLock::Kind::shared, kLockTimeout);
  if (!lock) return fail(lock.error());
  const auto used = store.usage();
  if (!used) return fail(used.error());
  // Under this lock no other process takes our new directory for a leftover.
  auto index = StoreLock::take(store.root(), kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!index) return fail(index.error());
  const auto random = sys::unpredictableName();
  if (!random) return fail(sysError(Stage::state, "getrandom", "image store", errno));
  std::string path = "tmp/" + random->substr(1);
  if (auto made = store.root().makeDirs(path, 0700); !made) return fail(made.error());
  auto directory = store.root().openFile(path, {.types = {sys::FileType::directory}});
  if (!directory) return fail(directory.error());
  if (::flock(directory->get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", path, errno));
  return Transaction(store, std::move(*lock), std::move(*directory), std::move(path), quota,
                     quota - std::min(quota, *used));
}

Transaction::Transaction(Transaction&& other) noexcept
    : store_(other.store_),
      lock_(std::move(other.lock_)),
      directory_(std::move(other.directory_)),
      path_(std::exchange(other.path_, "")),
      quota_(other.quota_),
      room_(other.room_),
      number_(other.number_),
      blobs_(std::move(other.blobs_)),
      needed_(std::move(other.needed_)),
      layers_(std::move(other.layers_)) {}

Transaction::~Transaction() {
  if (!path_.empty()) (void)store_->root().removeTree(path_);
}

std::uint64_t Transaction::diskRoom() const {
  struct statfs status{};
  if (::fstatfs(directory_.get(), &status) != 0) return std::numeric_limits<std::uint64_t>::max();
  const auto unit = static_cast<std::uint64_t>(status.f_bsize);
  const std::uint64_t floor = std::min(kMaxFloor, status.f_blocks * unit / 20);
  return status.f_bavail * unit - std::min<std::uint64_t>(status.f_bavail * unit, floor);
}

void Transaction::charge(std::uint64_t bytes) {
  room_ -= std::min(room_, bytes);
  (void)store_->trimPartial(room_);  // they count against the quota, too, and can be downloaded again
}

Result<StagedBlob> Transaction::newBlob() {
  std::string path = path_ + "/new-" + std::to_string(++number_);
  auto file = store_->root().openFile(path, {.flags = O_RDWR | O_CREAT | O_EXCL});
  if (!file) return fail(file.error());
  return StagedBlob(std::move(*file), std::move(path), std::min(room_, diskRoom()));
}

Result<ContentDigest> Transaction::add(StagedBlob blob, const std::optional<ContentDigest>& expected) {
  const ContentDigest digest = blob.digest();
  if (expected && digest != *expected) {
    return fail(plainError(Stage::state, "image", expected->text(), "the data has another digest: " + digest.text(),
                           "the source is damaged or was changed on the way"));
  }
  if (has(digest)) {
    if (auto removed = store_->root().remove(blob.path_); !removed) return fail(removed.error());
    return digest;
  }
  // Read-only: the confined decoder gets a descriptor of this file.
  if (::fchmod(blob.file_.get(), 0400) != 0) return fail(sysError(Stage::state, "chmod", blob.path_, errno));
  if (auto renamed = store_->root().rename(blob.path_, stagedBlob(digest), false); !renamed)
    return fail(renamed.error());
  charge(blob.size_);
  blobs_.emplace(digest, blob.size_);
  return digest;
}

Result<void> Transaction::adopt(const std::string& path, const ContentDigest& digest, std::uint64_t size) {
  if (size > room_) return fail(quotaUsedUp(digest.text()));
  const auto file = store_->root().openFile(path, {});
  if (!file) return fail(file.error());
  if (::fchmod(file->get(), 0400) != 0) return fail(sysError(Stage::state, "chmod", path, errno));
  if (auto renamed = store_->root().rename(path, stagedBlob(digest), true); !renamed) return renamed;
  charge(size);
  blobs_.emplace(digest, size);
  return {};
}

Result<ContentDigest> Transaction::addText(std::string_view text) {
  auto blob = newBlob();
  if (!blob) return fail(blob.error());
  if (auto written = blob->write(text); !written) return fail(written.error());
  return add(std::move(*blob));
}

bool Transaction::has(const ContentDigest& digest) const { return blobs_.contains(digest) || store_->hasBlob(digest); }

Result<sys::Fd> Transaction::openBlob(const ContentDigest& digest) const {
  return blobs_.contains(digest) ? store_->root().openFile(stagedBlob(digest), {}) : store_->openBlob(digest);
}

Result<std::string> Transaction::readText(const ContentDigest& digest) const {
  const std::string path = blobs_.contains(digest) ? stagedBlob(digest) : blobPath(digest);
  auto text = store_->root().readFile(path, kMaxDocument);
  if (text && ContentDigest::of(*text) != digest) {
    return fail(plainError(Stage::state, "image", digest.text(), "the stored blob does not have this digest"));
  }
  return text;
}

Result<sys::RootDir> Transaction::newLayer(const ContentDigest& layer) {
  const std::string path = stagedLayer(layer) + std::string(kLayerRoot);
  if (auto made = store_->root().makeDirs(path, 0755); !made) return fail(made.error());
  return store_->root().enter(path);
}

Result<StagedBlob> Transaction::newLayerFile(const ContentDigest& layer, std::string_view name) {
  std::string path = stagedLayer(layer) + std::string(name);
  auto file = store_->root().openFile(path, {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 0600});
  if (!file) return fail(file.error());
  return StagedBlob(std::move(*file), std::move(path), room_);
}

Result<void> Transaction::saveLayerFile(const ContentDigest& layer, std::string_view name, std::string_view text) {
  return store_->root().replaceFile(stagedLayer(layer) + std::string(name), text, 0600);
}

Result<void> Transaction::addLayer(const LayerCompletion& completion) {
  const std::string path = stagedLayer(completion.layer) + std::string(kLayerComplete);
  if (auto written = store_->root().replaceFile(path, completion.written(), 0600); !written) return written;
  charge(completion.charged());
  layers_.emplace(completion.layer, completion);
  return {};
}

std::optional<ContentDigest> Transaction::unpacked(const ContentDigest& layer) const {
  const auto staged = layers_.find(layer);
  return staged != layers_.end() ? staged->second.diff_id : store_->unpacked(layer);
}

std::uint64_t Transaction::added() const {
  std::uint64_t bytes = 0;
  for (const auto& [digest, size] : blobs_)
    if (needed_.contains(digest) && !store_->hasBlob(digest)) bytes += size;
  for (const auto& [digest, completion] : layers_)
    if (!store_->unpacked(digest)) bytes += completion.charged();
  return bytes;
}

Result<void> Transaction::publish() const {
  // Under the lock: other processes that began with the same room publish before or after this.
  const auto index = StoreLock::take(store_->root(), kIndexLock, StoreLock::Kind::exclusive, kLockTimeout);
  if (!index) return fail(index.error());
  const auto used = store_->usage();
  if (!used) return fail(used.error());
  if (added() > quota_ - std::min(quota_, *used)) return fail(quotaUsedUp("store"));
  const auto move = [&](const std::string& from, const std::string& to) -> Result<void> {
    auto renamed = store_->root().rename(from, to, false);
    // Another process may have added the same content meanwhile.
    return renamed || renamed.error().sys_errno == EEXIST ? Result<void>{} : renamed;
  };
  for (const auto& [digest, size] : blobs_) {
    if (!needed_.contains(digest)) continue;
    if (auto done = move(stagedBlob(digest), blobPath(digest)); !done) return done;
  }
  for (const auto& [digest, completion] : layers_)
    if (auto done = move(stagedLayer(digest), layerPath(digest)); !done) return done;
  return {};
}

Result<void> Transaction::commit(const std::vector<StoredName>& names) {
  // Before anything is visible; addNames() checks again under the lock.
  const auto known = store_->names();
  if (!known) return fail(known.error());
  if (auto checked = checkIndexEntries(known->size() + names.size()); !checked) return checked;
  if (::syncfs(directory_.get()) != 0) return fail(sysError(Stage::state, "syncfs", "image store", errno));
  if (auto published = publish(); !published) return published;
  // The renames must be on disk before a name refers to them.
  if (::syncfs(directory_.get()) != 0) return fail(sysError(Stage::state, "syncfs", "image store", errno));
  return store_->addNames(names);
}

}  // namespace caisson::image
