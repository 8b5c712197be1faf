// Names of a tree that are hidden with everything below them: a workspace can have thousands.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::plan {

class HiddenNames {
 public:
  explicit HiddenNames(const std::vector<std::string>& names) : names_(names.begin(), names.end()) {}

  void add(const std::string& name) { names_.insert(name); }
  /// Whether the path or a directory above it is hidden.
  [[nodiscard]] bool hides(std::string_view path) const {
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
      if (names_.contains(path.substr(0, slash))) return true;
    }
    return names_.contains(path);
  }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace caisson::plan
