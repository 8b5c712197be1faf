// What this session itself put into the real workspace, so that its own work is not taken for somebody else's.
#pragma once

#include <map>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

class Committed {
 public:
  static Result<Committed> load(const sys::RootDir& session);

  /// Whether the file is exactly as this session left it.
  [[nodiscard]] bool isOurs(const std::string& path, const sys::FileInfo& now) const;
  /// Remembers it, on disk before this returns.
  Result<void> add(const std::string& path, const sys::FileInfo& now);

 private:
  explicit Committed(sys::Fd file) : file_(std::move(file)) {}
  sys::Fd file_;
  std::map<std::string, std::string> stamps_;
};

}  // namespace caisson::session
