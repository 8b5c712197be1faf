// The real workspace as a commit sees it: looked at name by name, never through a link.
//
// A directory that is a link in the real workspace would let a commit of `docs/hooks/x` land in `.git/hooks/x`.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

sys::FileInfo fileInfoOf(const struct stat& status);

class RealTree {
 public:
  explicit RealTree(const sys::RootDir& root) : root_(root) {}

  [[nodiscard]] const sys::RootDir& root() const { return root_; }

  /// The directory that holds `path`, reached without following links; `name` is set to the path's last part. The
  /// descriptor is valid until the next call. ENOTDIR or ELOOP when a parent is a link or not a directory, ENOENT when
  /// it is missing.
  Result<int> parentOf(const std::string& path, std::string& name);
  /// What a directory gives to the names that are made in it.
  struct ParentFacts {
    uid_t uid = 0;
    gid_t gid = 0;
    bool gives_group = false;        ///< its setgid bit
    bool gives_access_list = false;  ///< a default access list, which a rename does not apply
  };
  /// The facts of the directory that parentOf() returned last.
  Result<ParentFacts> parentFacts();
  /// Drops the cached directory of parentOf(). Call after directories were replaced or moved.
  void forget() { parent_.reset(); }

  /// The object at `path`, or nothing. An error when a parent is a link or not a directory.
  Result<std::optional<sys::FileInfo>> look(const std::string& path);
  /// Whether anything below a directory was changed after `since_ns`, or cannot be read. Directories themselves, and
  /// objects for which `ours` returns true, do not count.
  [[nodiscard]] bool changedBelow(const std::string& path, std::int64_t since_ns,
                                  const std::function<bool(const std::string&, const sys::FileInfo&)>& ours) const;

 private:
  const sys::RootDir& root_;
  sys::Fd parent_;  ///< paths come sorted, so that neighbours share their directory
  std::string parent_path_;
  std::optional<ParentFacts> parent_facts_;
};

}  // namespace caisson::session
