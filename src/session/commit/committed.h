// What this session itself put into the real workspace, so that its own work is not taken for the work of others.
#pragma once

#include <string>
#include <unordered_map>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

class Committed {
 public:
  /// Reads the session's file, which is created if needed.
  static Result<Committed> load(const sys::RootDir& session);

  /// Whether `now` is the object, unchanged, that this session committed to the path. A path with a trailing `/`: the
  /// directory's list of names.
  [[nodiscard]] bool isOurs(const std::string& path, const sys::FileInfo& now) const;
  /// Whether `now` is what this session committed to the path, perhaps changed since; of a directory, whether it is the
  /// one that the session made, or made names in.
  [[nodiscard]] bool isSameObject(const std::string& path, const sys::FileInfo& now) const;
  /// Adds what the session just committed. `sha256`: of a regular file's content; else empty. save() writes it.
  void add(const std::string& path, const sys::FileInfo& now, const std::string& sha256 = {});
  /// The SHA-256 of the content that this session committed to the path last, or empty.
  [[nodiscard]] std::string hashOf(const std::string& path) const;
  /// Appends what was added to the session's file, without waiting for the disk.
  Result<void> save();

 private:
  explicit Committed(sys::Fd file) : file_(std::move(file)) {}
  sys::Fd file_;
  std::unordered_map<std::string, std::string> stamps_;
  std::unordered_map<std::string, std::string> hashes_;
  std::string pending_;
};

}  // namespace caisson::session
