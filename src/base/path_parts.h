// The parts of a path.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace caisson {

/// The directory of an absolute path; "/" for a path at the top.
inline std::string parentOf(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

/// The directory of a path that is relative to some root; "" is the root itself.
inline std::string directoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

inline std::string nameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// A name in a directory that is relative to some root.
inline std::string join(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

/// Whether a relative path is one of the directories, or lies in one.
template <class Set>
bool isInOneOf(const std::string& path, const Set& directories) {
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    if (directories.contains(path.substr(0, end))) return true;
  }
  return directories.contains(path);
}

}  // namespace caisson
