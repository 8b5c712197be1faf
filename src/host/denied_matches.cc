#include "host/denied_matches.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "base/path_parts.h"
#include "isolation/child.h"
#include "policy/rules/denied_names.h"
#include "policy/rules/name_pattern.h"

namespace caisson::host {
namespace {

bool exists(int root, const std::string& path) {
  const long fd = isolation::openBeneath(root, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) ::close(static_cast<int>(fd));
  return fd >= 0;
}

void addMatches(int root, const std::string& directory, std::span<const std::string> parts,
                std::vector<std::string>& found) {
  const std::string& part = parts.front();
  const auto add = [&](const std::string& path) {
    if (parts.size() > 1) return addMatches(root, path, parts.subspan(1), found);
    if (std::ranges::find(found, path) == found.end()) found.push_back(path);
  };
  if (part.find_first_of("*?[\\") == std::string::npos) {
    if (exists(root, join(directory, part))) add(join(directory, part));
    return;
  }
  const long fd = isolation::openBeneath(root, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = fd < 0 ? nullptr : ::fdopendir(static_cast<int>(fd));
  if (stream == nullptr) {
    if (fd >= 0) ::close(static_cast<int>(fd));
    return;
  }
  std::vector<std::string> names;
  while (const dirent* item = ::readdir(stream)) {
    const std::string name = item->d_name;
    if (name != "." && name != ".." && policy::deniesName(part, name)) names.push_back(name);
  }
  ::closedir(stream);
  for (const std::string& name : names) add(join(directory, name));
}

}  // namespace

std::vector<std::string> deniedMatches(int workspace, const std::vector<std::string>& entries) {
  std::vector<std::string> found;
  for (const std::string& entry : entries) {
    std::vector<std::string> parts;
    for (const std::string_view part : policy::splitParts(entry, '/')) parts.emplace_back(part);
    if (!parts.empty()) addMatches(workspace, "", parts, found);
  }
  return found;
}

bool mayMatch(const std::vector<std::string>& entries, const std::string& name) {
  return std::ranges::any_of(
      entries, [&](const std::string& entry) { return policy::deniesName(entry.substr(entry.rfind('/') + 1), name); });
}

}  // namespace caisson::host
