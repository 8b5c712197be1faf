// Where the session's policy lets nothing be written: denied paths, and what it shows read-only.
//
// The session sees neither a denied path nor what the host puts there, so a file that it makes there is new to the
// host, and no conflict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/model.h"

namespace caisson::session {

class ClosedPaths {
 public:
  /// `workspace`: the real directory, canonical.
  ClosedPaths(const policy::Policy& policy, std::string_view workspace);

  /// The workspace itself may lie in a read-only path: its owner chose it all the same, a model did not.
  void closeWorkspaceInReadOnly() { with_workspace_ = true; }

  /// Why nothing may be changed at this path of the workspace, or below it; empty: it may.
  [[nodiscard]] std::string why(std::string_view path) const;

 private:
  [[nodiscard]] bool isDenied(std::string_view path) const;
  [[nodiscard]] bool isReadOnly(const std::string& path) const;

  std::string workspace_;
  std::vector<std::string> denied_;  ///< relative to the workspace, as patterns
  std::vector<std::string> read_only_, read_write_;
  bool with_workspace_ = false;
};

}  // namespace caisson::session
