// What a copy of a directory from a session to the host leaves out: what the host would execute, and what would replace
// a file that the session does not show.
//
// Both sides may change during the copy. The source is listed first, since only all of its names tell a git directory
// and where its links lead; what is not as it was listed is not copied.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "session/commit/held_paths.h"
#include "session/commit/real_tree.h"
#include "session/layers/hidden_host_files.h"
#include "session/store/metadata.h"
#include "sys/root_dir.h"

namespace caisson::session {

class CopyGuard {
 public:
  /// `host`: the directory that gets the copy; must outlive this. `real`: its canonical path.
  CopyGuard(const sys::RootDir& host, const std::string& real, const Metadata& metadata);

  /// Lists the directory `from` of the session, whose copy is `to` in the host's directory. Nothing for a file, which
  /// is copied by its own name.
  Result<void> list(const sys::RootDir& session, const std::string& from, const std::string& to);

  /// Why an entry below the copied directory, given by its path in the host's directory, is left out; "": it is not.
  /// `target`: of a link.
  std::string whyHeld(const std::string& path, sys::FileType type, const std::string& target);

 private:
  struct Listed {
    sys::FileType type = sys::FileType::unknown;
    std::string target;  ///< of a link
  };
  Result<void> listDirectory(const sys::RootDir& session, const std::string& from, const std::string& to,
                             std::vector<std::pair<std::string, std::string>>& pending);

  Metadata there_;  ///< as if the host's directory were the workspace
  RealTree tree_;
  HeldPaths held_;
  HiddenHostFiles hidden_;
  std::map<std::string, Listed> listed_;
};

}  // namespace caisson::session
