// Which parts of a workspace behind a layer the sandbox shows directly: those below `--rw` and `--ro`. And where it
// shows the workspace, or parts of it, a second time.
//
// There, a name is hidden by a mount on one file, which is lost when the host puts another file in its place.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "supervise/workspace/live_mask.h"

namespace caisson::supervise {

class DirectParts {
 public:
  explicit DirectParts(const plan::Plan& plan);

  /// `path` is relative to the workspace.
  [[nodiscard]] bool holds(const std::string& path) const;
  [[nodiscard]] bool writes(const std::string& path) const;
  /// Files in them that are shown without their credentials, by a mount.
  [[nodiscard]] std::vector<std::string> redacted() const;
  /// A target for masks over these paths, wherever the workspace is shown.
  [[nodiscard]] MaskTarget maskTarget(const plan::Plan& plan, const std::vector<std::string>& paths) const;

 private:
  std::set<std::string> all_, writable_, redacted_;
  std::vector<MaskCopy> copies_;
};

}  // namespace caisson::supervise
