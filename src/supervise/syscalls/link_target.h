// Follows a link at the end of a path by hand, for calls that the supervisor makes for a payload.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <string_view>

namespace caisson::supervise {

/// Replaces the last part of the absolute `path` by the target of `link`, an O_PATH descriptor of the link that is
/// there. Returns 0 or an errno. The caller bounds the number of links and opens the result inside the payload's root.
inline int followLinkAt(int link, std::string& path) {
  char text[PATH_MAX];
  const ssize_t length = ::readlinkat(link, "", text, sizeof(text));
  if (length <= 0 || length == sizeof(text)) return ENAMETOOLONG;
  const std::string_view to(text, static_cast<std::size_t>(length));
  while (path.ends_with('/')) path.pop_back();
  if (to.starts_with('/')) {
    path = to;
  } else {
    path.replace(path.rfind('/') + 1, std::string::npos, to);
  }
  return path.size() >= PATH_MAX ? ENAMETOOLONG : 0;
}

}  // namespace caisson::supervise
