// The image store, for programs that change it (src/image/layout.h has the files; src/image/lookup.h finds an image).
//
// Crash-safe: new blobs and layers are complete in tmp/ and synced before a rename makes them visible, the name comes
// last. What a killed process left in tmp/ is removed by the next one. Locks have deadlines.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/index_file.h"
#include "image/layout.h"
#include "image/reference.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::image {

/// An exclusive or shared flock of a file in the store, released by the destructor.
class StoreLock {
 public:
  enum class Kind : std::uint8_t { shared, exclusive };
  static Result<StoreLock> take(const sys::RootDir& store, std::string_view file, Kind kind,
                                std::chrono::milliseconds timeout);

 private:
  explicit StoreLock(sys::Fd file) : file_(std::move(file)) {}
  sys::Fd file_;
};

inline constexpr std::string_view kUseLock = "lock";          ///< shared: adds blobs; exclusive: removes them
inline constexpr std::string_view kIndexLock = "index.lock";  ///< exclusive: changes index.json or tmp/
inline constexpr auto kLockTimeout = std::chrono::seconds(10);

/// An error for a name of kBuildCache: what it refers to is used as the result of a command, so no archive, registry or
/// user may give it.
Result<void> refuseReserved(const Reference& reference);

/// An error for a new name that a user could take for the id of another image.
Result<void> refuseIdName(const Reference& reference);

struct Removed {
  std::uint64_t blobs = 0, layers = 0, bytes = 0;
  std::vector<std::string> in_use;  ///< layers that a sandbox uses; they stay
};

class Store {
 public:
  /// Opens the store, creates it if missing, and removes what killed processes left.
  static Result<Store> open();

  [[nodiscard]] const sys::RootDir& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<std::vector<StoredName>> names() const { return readIndex(root_); }

  [[nodiscard]] bool hasBlob(const ContentDigest& digest) const;
  /// Whether the layer is unpacked and its completion record is valid; its DiffID then.
  [[nodiscard]] std::optional<ContentDigest> unpacked(const ContentDigest& layer) const;
  [[nodiscard]] Result<sys::Fd> openBlob(const ContentDigest& digest) const;
  /// Bytes of all blobs and unpacked layers, as the quota counts them.
  [[nodiscard]] Result<std::uint64_t> usage() const;

  /// Adds the names; an image that loses its name stays, without one. Durable on return.
  Result<void> addNames(const std::vector<StoredName>& added) const;
  /// Removes the index entries for which `remove` returns true; returns how many. Images of `kept` lose only their
  /// names.
  Result<std::size_t> removeNames(const std::function<bool(const StoredName&)>& remove,
                                  const std::set<ContentDigest>& kept) const;
  /// Waits for processes that add something; none can until the lock is gone. An error if that takes too long.
  [[nodiscard]] Result<StoreLock> lockForRemoval() const;
  /// Removes blobs and layers that no entry of the index needs, and partial downloads.
  Result<Removed> collectGarbage(const StoreLock& for_removal) const;
  /// Removes partial downloads, the oldest first, until the others take at most `bytes`; returns how much they take.
  /// Those of `wanted` (names of files) stay and do not count; those that a process continues stay and count.
  std::uint64_t trimPartial(std::uint64_t bytes, const std::set<std::string>& wanted = {}) const;

 private:
  Store(sys::RootDir root, std::string path) : root_(std::move(root)), path_(std::move(path)) {}
  Result<void> writeLayoutFiles() const;
  Result<void> removeLeftovers() const;
  /// File names of blobs and layers that the index needs.
  Result<std::set<std::string>> neededHashes() const;
  void removeLayer(const std::string& name, Removed& removed) const;

  sys::RootDir root_;
  std::string path_;
};

}  // namespace caisson::image
