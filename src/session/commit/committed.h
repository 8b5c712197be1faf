// What this session itself put into the real workspace, so that its own work is not taken for the work of others.
#pragma once

#include <string>
#include <unordered_map>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

class Committed {
 public:
  static Result<Committed> load(const sys::RootDir& session);

  /// Whether the file is exactly as this session left it.
  [[nodiscard]] bool isOurs(const std::string& path, const sys::FileInfo& now) const;
  /// `sha256` of a regular file's content; else empty.
  void add(const std::string& path, const sys::FileInfo& now, const std::string& sha256 = {});
  /// The content that this session committed to the path last, or empty.
  [[nodiscard]] std::string hashOf(const std::string& path) const;
  /// Appends to the session's file what was added.
  Result<void> save();

 private:
  explicit Committed(sys::Fd file) : file_(std::move(file)) {}
  sys::Fd file_;
  std::unordered_map<std::string, std::string> stamps_;
  std::unordered_map<std::string, std::string> hashes_;
  std::string pending_;
};

}  // namespace caisson::session
