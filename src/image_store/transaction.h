// Adds blobs, unpacked layers and names to the store, all or nothing.
//
//   auto transaction = Transaction::begin(store, quota);
//   auto blob = transaction->newBlob();
//   blob->write(bytes);
//   auto digest = transaction->add(std::move(*blob));
//   transaction->commit({.name = ..., .manifest = *digest});
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "image_store/store.h"

namespace caisson::image {

/// A file in tmp/ that is hashed while it is written.
class StagedBlob {
 public:
  Result<void> write(std::string_view bytes);
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// At most this many bytes are accepted from now on, in total.
  void limit(std::uint64_t bytes) { limit_ = bytes; }
  /// Of what was written; nothing can be written afterwards.
  ContentDigest digest() { return ContentDigest::from(hash_.finish()); }

 private:
  friend class Transaction;
  StagedBlob(sys::Fd file, std::string path, std::uint64_t limit)
      : file_(std::move(file)), path_(std::move(path)), limit_(limit) {}

  sys::Fd file_;
  std::string path_;
  Sha256 hash_;
  std::uint64_t size_ = 0, limit_;
};

class Transaction {
 public:
  /// `quota`: bytes that the whole store may have.
  static Result<Transaction> begin(const Store& store, std::uint64_t quota);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  /// Removes everything that was not committed.
  ~Transaction();

  [[nodiscard]] const Store& store() const { return *store_; }
  /// Bytes that may still be added by the quota.
  [[nodiscard]] std::uint64_t room() const { return room_; }
  /// Bytes that can be written now: some room on the disk always stays for others.
  [[nodiscard]] std::uint64_t diskRoom() const;

  Result<StagedBlob> newBlob();
  /// Ends the blob and returns its digest. With `expected`: an error if the digest is another one.
  Result<ContentDigest> add(StagedBlob blob, const std::optional<ContentDigest>& expected = {});
  /// Adopts a complete file of the store's partial/ whose digest was checked.
  Result<void> adopt(const std::string& path, const ContentDigest& digest, std::uint64_t size);
  Result<ContentDigest> addText(std::string_view text);
  /// Whether the blob is in the store or in this transaction.
  [[nodiscard]] bool has(const ContentDigest& digest) const;
  [[nodiscard]] Result<sys::Fd> openBlob(const ContentDigest& digest) const;
  /// A document of at most kMaxDocument bytes, its digest checked.
  [[nodiscard]] Result<std::string> readText(const ContentDigest& digest) const;

  /// A new empty directory for an unpacked layer; addLayer() ends it.
  Result<sys::RootDir> newLayer(const ContentDigest& layer);
  /// A new file beside the layer's directory, for more than fits into memory. addLayer() charges its size.
  Result<StagedBlob> newLayerFile(const ContentDigest& layer, std::string_view name);
  /// Writes one of the files beside the layer's directory.
  Result<void> saveLayerFile(const ContentDigest& layer, std::string_view name, std::string_view text);
  Result<void> addLayer(const LayerCompletion& completion);
  [[nodiscard]] std::optional<ContentDigest> unpacked(const ContentDigest& layer) const;

  /// Marks a blob as part of an image; commit() discards the others.
  void need(const ContentDigest& digest) { needed_.insert(digest); }
  /// Makes everything durable and visible.
  Result<void> commit(const std::vector<StoredName>& names);

 private:
  Transaction(const Store& store, StoreLock lock, sys::Fd directory, std::string path, std::uint64_t quota,
              std::uint64_t room)
      : store_(&store),
        lock_(std::move(lock)),
        directory_(std::move(directory)),
        path_(std::move(path)),
        quota_(quota),
        room_(room) {}
  [[nodiscard]] std::string stagedBlob(const ContentDigest& digest) const { return path_ + "/blob-" + digest.hex(); }
  [[nodiscard]] std::string stagedLayer(const ContentDigest& digest) const { return path_ + "/layer-" + digest.hex(); }
  void charge(std::uint64_t bytes);
  /// Bytes that publishing would add to the store; what another process added meanwhile is there already.
  [[nodiscard]] std::uint64_t added() const;
  /// Renames blobs and layers to their places, if they fit into the quota.
  Result<void> publish() const;

  const Store* store_;
  StoreLock lock_;
  sys::Fd directory_;  ///< of tmp/NAME, locked while this process lives
  std::string path_;   ///< "tmp/NAME"; empty after a move
  std::uint64_t quota_, room_;
  std::uint64_t number_ = 0;
  std::map<ContentDigest, std::uint64_t> blobs_;
  std::set<ContentDigest> needed_;
  std::map<ContentDigest, LayerCompletion> layers_;
};

}  // namespace caisson::image
