// Paths of caisson's own configuration and state. It executes programs that they name on the host, so nothing of a
// session arrives there, also if a person asks for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::session {

/// A path by which a file system that ignores case finds the same object.
std::string foldedPath(std::string_view path);

class OwnPaths {
 public:
  /// `directory`: of the host, canonical; paths are relative to it.
  explicit OwnPaths(std::string_view directory);

  /// Whether the path is or lies in one of these places, or is a link that leads to one.
  [[nodiscard]] bool contain(std::string_view path) const;
  /// Whether one of these places is at the path or below it: a link there would redirect it.
  [[nodiscard]] bool areBelow(std::string_view path) const;

 private:
  std::string directory_;            ///< folded
  std::vector<std::string> places_;  ///< folded
};

}  // namespace caisson::session
