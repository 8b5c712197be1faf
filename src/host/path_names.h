// The parts of an absolute path.
#pragma once

#include <algorithm>
#include <string>

namespace caisson::host {

/// The directory of an absolute path; "/" for a path at the top.
inline std::string parentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}
inline std::string nameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace caisson::host
