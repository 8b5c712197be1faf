// Names of a tree that are hidden with everything below them: a workspace can have thousands.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/path_parts.h"

namespace caisson::plan {

class HiddenNames {
 public:
  explicit HiddenNames(const std::vector<std::string>& names) : names_(names.begin(), names.end()) {}

  void add(const std::string& name) { names_.insert(name); }
  /// Whether the path or a directory above it is hidden.
  [[nodiscard]] bool hides(const std::string& path) const { return isInOneOf(path, names_); }

 private:
  std::set<std::string> names_;
};

}  // namespace caisson::plan
