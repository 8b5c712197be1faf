// What this session itself put into the real workspace, so that its own work is not taken for the work of others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// What the commits of a session did last with a path.
enum class LastChange : std::uint8_t { none, put, removed };

inline constexpr const char* kCommitted = "committed";

class Committed {
 public:
  /// Reads the session's file, which is created if needed.
  static Result<Committed> load(const sys::RootDir& session, const char* file = kCommitted);

  /// Whether there is such a file in `directory`.
  static bool isIn(const sys::RootDir& directory);

  /// Whether `now` is the object, unchanged, that this session committed to the path. A path with a trailing `/`: the
  /// directory's list of names.
  [[nodiscard]] bool isOurs(const std::string& path, const sys::FileInfo& now) const;
  /// Whether `now` is what this session committed to the path, perhaps changed since; of a directory, whether it is the
  /// one that the session made, or made names in.
  [[nodiscard]] bool isSameObject(const std::string& path, const sys::FileInfo& now) const;
  /// Whether anything was recorded about the path.
  [[nodiscard]] bool knows(const std::string& path) const { return stamps_.contains(path); }
  [[nodiscard]] LastChange lastChange(const std::string& path) const;
  /// Adds what the session just removed, with everything below. `path` with a trailing `/`: only what is below.
  void addRemoved(const std::string& path);
  /// Adds that something which the session had removed is there again.
  void addRestored(const std::string& path);
  /// Adds what the session just committed. `sha256`: of a regular file's content; else empty. save() writes it.
  void add(const std::string& path, const sys::FileInfo& now, const std::string& sha256 = {});
  /// Records the digest of a directory's attributes (attributesDigest()), under its path with a trailing `/`.
  void addHash(const std::string& path, const std::string& sha256);
  /// The SHA-256 of the content that this session committed to the path last, or empty.
  [[nodiscard]] std::string hashOf(const std::string& path) const;
  /// Adds what `other` has about the path last, and about the directory there.
  void addFrom(const Committed& other, const std::string& path);
  /// Appends what was added to the session's file, without waiting for the disk.
  Result<void> save();

 private:
  explicit Committed(sys::Fd file) : file_(std::move(file)) {}
  sys::Fd file_;
  struct Stamp {
    std::string text;
    std::size_t order = 0;  ///< of the record
  };
  void append(std::string_view value, const std::string& path);
  /// Applies one record of the file.
  void read(std::string value, const std::string& path);

  std::unordered_map<std::string, Stamp> stamps_;
  std::unordered_map<std::string, std::size_t> removed_;  ///< by path: the order of the record
  std::size_t records_ = 0;
  std::unordered_map<std::string, std::string> hashes_;
  std::string pending_;
};

}  // namespace caisson::session
