#include "session/commit/commit_filter.h"

#include <algorithm>
#include <vector>

namespace caisson::session {
namespace {

std::vector<std::string_view> partsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

bool leadsOut(std::string_view path, std::string_view target) {
  if (target.starts_with('/')) return true;
  long depth = static_cast<long>(partsOf(path).size()) - 1;
  for (const std::string_view part : partsOf(target)) {
    if (part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

}  // namespace caisson::session
