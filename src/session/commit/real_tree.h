// The real workspace, changed by a commit: one file at a time, whole, and never through a link.
//
// Parents are walked name by name without following: a directory that is a link in the real workspace would let a
// commit of `docs/hooks/x` land in `.git/hooks/x`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

class RealTree {
 public:
  explicit RealTree(const sys::RootDir& root) : root_(root) {}

  /// What is there, or nothing. An error when a parent is a link or no directory.
  Result<std::optional<sys::FileInfo>> look(const std::string& path) const;
  /// Whether anything below a directory was changed after `since_ns` other than by `ours`.
  bool changedBelow(const std::string& path, std::int64_t since_ns,
                    const std::function<bool(const std::string&, const sys::FileInfo&)>& ours) const;

  /// The content of `source` becomes the file, with these permission bits.
  Result<void> putFile(const std::string& path, int source, mode_t mode) const;
  Result<void> putLink(const std::string& path, const std::string& target) const;
  Result<void> putDirectory(const std::string& path, mode_t mode) const;
  Result<void> remove(const std::string& path) const;

 private:
  Result<sys::Fd> parentOf(const std::string& path, bool make, std::string& name) const;

  const sys::RootDir& root_;
};

}  // namespace caisson::session
