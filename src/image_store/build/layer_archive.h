// Makes the tar archive of a new layer. Equal content gives equal archives: sorted, owner 0:0, times at most
// SOURCE_DATE_EPOCH.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "image_store/transaction.h"
#include "sys/root_dir.h"

struct archive;
struct archive_entry;

namespace caisson::image {

class LayerArchive {
 public:
  static Result<std::unique_ptr<LayerArchive>> begin(Transaction& transaction);
  ~LayerArchive();
  LayerArchive(const LayerArchive&) = delete;
  LayerArchive& operator=(const LayerArchive&) = delete;

  /// A directory; nothing if this archive has it already.
  Result<void> directory(const std::string& path, std::uint32_t mode, std::int64_t mtime);
  Result<void> file(const std::string& path, std::uint32_t mode, std::int64_t mtime, int descriptor,
                    std::uint64_t size);
  Result<void> text(const std::string& path, std::uint32_t mode, std::string_view data);
  Result<void> link(const std::string& path, const std::string& target, std::int64_t mtime);
  Result<void> hardLink(const std::string& path, const std::string& target);
  /// Everything below an overlay's upper directory, which a payload wrote: whiteouts and opaque directories get the
  /// form of image layers; devices, FIFOs and sockets are left out. No link is followed.
  Result<void> upperDirectory(const sys::RootDir& upper);

  [[nodiscard]] bool empty() const { return entries_ == 0; }
  /// Ends the archive and returns its digest, which is the DiffID too.
  Result<ContentDigest> finish();
  [[nodiscard]] std::uint64_t size() const { return blob_.size(); }

 private:
  LayerArchive(Transaction& transaction, StagedBlob blob);
  Result<void> header(archive_entry* entry, const std::string& path);
  Result<void> walk(int parent, const std::string& name, const std::string& path, std::size_t depth);
  Result<void> upperEntry(int parent, const std::string& name, const std::string& path, std::size_t depth);
  [[nodiscard]] Error failure(const std::string& path) const;
  static Error tooLarge();

  Transaction& transaction_;
  StagedBlob blob_;
  std::optional<Error> error_;
  archive* archive_;
  std::int64_t newest_;  ///< later times are clamped
  std::set<std::string> directories_;
  std::map<std::uint64_t, std::string> linked_;  ///< inode -> first path
  std::uint64_t entries_ = 0, text_ = 0;         ///< headers, and the bytes of their paths
  std::uint64_t found_ = 0, listed_ = 0;         ///< names in directories of a payload, and their bytes
};

}  // namespace caisson::image
