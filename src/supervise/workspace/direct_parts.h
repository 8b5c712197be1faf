// Which parts of a workspace behind a layer the sandbox shows directly: those below `--rw` and `--ro`.
//
// There, a name is hidden by a mount on one file, which is lost when the host puts another file in its place.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace caisson::supervise {

class DirectParts {
 public:
  explicit DirectParts(const plan::Plan& plan);

  /// `path` is relative to the workspace.
  [[nodiscard]] bool holds(const std::string& path) const;
  [[nodiscard]] bool writes(const std::string& path) const;
  /// Files in them that are shown without their credentials, by a mount.
  [[nodiscard]] std::vector<std::string> redacted() const;

 private:
  std::set<std::string> all_, writable_, redacted_;
};

}  // namespace caisson::supervise
