#include "policy/rules/denied_names.h"

#include <fnmatch.h>

#include "policy/decode/syntax.h"
#include "policy/rules/name_pattern.h"

namespace caisson::policy {

bool deniesName(const std::string& part, const std::string& name) {
  return part == name || ::fnmatch(part.c_str(), name.c_str(), 0) == 0;
}

bool deniesPath(std::string_view entry, std::string_view path) {
  const auto parts = splitParts(entry, '/'), names = splitParts(path, '/');
  if (parts.size() != names.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!deniesName(std::string(parts[i]), std::string(names[i]))) return false;
  }
  return true;
}

DeniedElsewhere deniedElsewhere(const std::vector<std::string>& entries, std::string_view top,
                                std::string_view workspace) {
  constexpr std::string_view kShown = "/workspace";
  DeniedElsewhere found;
  if (workspace == top) return found;
  const bool above = isWithin(top, workspace);
  if (!above && !isWithin(workspace, top)) return found;
  const auto way = above ? std::vector<std::string_view>() : splitParts(workspace.substr(top.size()), '/');
  std::string prefix(kShown);
  if (above) prefix += (workspace == "/" ? "/" : "") + std::string(top.substr(workspace.size()));
  for (const std::string& entry : entries) {
    const std::string path = normalPath(entry);
    if (!isWithin(path, kShown)) continue;
    const std::vector<std::string_view> parts = splitParts(std::string_view(path).substr(kShown.size()), '/');
    std::size_t same = 0;
    while (same < parts.size() && same < way.size() && deniesName(std::string(parts[same]), std::string(way[same]))) {
      ++same;
    }
    if (same < way.size() && same < parts.size()) continue;
    if (same == parts.size() && !above) {
      found.whole = entry;
      continue;
    }
    std::string inside = prefix;
    for (; same < parts.size(); ++same) inside += "/" + std::string(parts[same]);
    found.entries.push_back(std::move(inside));
  }
  return found;
}

}  // namespace caisson::policy
